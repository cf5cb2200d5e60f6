// Bundles cowasm.js with the packages of NODE_PATH: node webpack --env folder=... --env entry=...
const modules = process.env.NODE_PATH;
const Polyfill = require(`${modules}/node-polyfill-webpack-plugin`);
const { NormalModuleReplacementPlugin } = require(`${modules}/webpack`);

module.exports = ({ entry, folder }) => ({
  mode: 'production',
  devtool: false,
  context: modules,
  entry,
  output: { path: folder, filename: 'runtime.js', publicPath: '' },
  // Packages that python-wasm fetches whether they are imported or not: six in place of each.
  plugins: [new Polyfill(), new NormalModuleReplacementPlugin(/\/(pandas|sympy|mpmath|Cython|dateutil|pytz)\.tar\.xz$/, './six.tar.xz')],
  module: { rules: [{ test: /\.(wasm|zip|xz)$/, type: 'asset/resource' }] },
  resolve: { modules: [modules], fallback: { fs: false, child_process: false, worker_threads: false, 'posix-node': false } },
  resolveLoader: { modules: [modules] },
  performance: { hints: false },
});
