// Runs `pack.pack` in the Python of the packages: node pack.js HERE CORE PACKAGES INTO.
const { syncPython } = require('python-wasm');

(async () => {
  const python = await syncPython({ fs: 'everything' });
  const [here, ...given] = process.argv.slice(2).map((one) => JSON.stringify(one));
  python.exec(`
import sys, traceback
sys.path.insert(0, ${here})
try:
    import pack
    pack.pack(${given})
    failed = ''
except BaseException:
    failed = traceback.format_exc()
`);
  const failed = python.repr('failed');
  if (failed !== "''") console.error(failed.replace(/\\n/g, '\n'));
  process.exit(failed === "''" ? 0 : 1);
})();
