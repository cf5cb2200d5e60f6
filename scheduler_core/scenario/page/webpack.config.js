// Bundles cowasm.worker.js with the packages of NODE_PATH: node webpack --env folder=... --env entry=...
const modules = process.env.NODE_PATH;
const Polyfill = require(`${modules}/node-polyfill-webpack-plugin`);

module.exports = ({ entry, folder }) => ({
  mode: 'production',
  target: 'webworker',
  devtool: false,
  context: modules,
  entry,
  output: { path: folder, filename: 'worker.js', publicPath: '' },
  plugins: [new Polyfill()],
  resolve: { modules: [modules], fallback: { fs: false, child_process: false, worker_threads: false, 'posix-node': false } },
  resolveLoader: { modules: [modules] },
  performance: { hints: false },
});
