// The runtime by address: Pyodide in a worker of its own.
globalThis.startEngine = (tell) => new Promise((resolve, reject) => {
  const worker = new Worker('worker.js');
  const open = [];
  const ask = (name, given) => new Promise((answer) => { open.push(answer); worker.postMessage({ name, given }); });
  worker.onerror = (event) => reject(new Error(event.message || 'its worker did not start'));
  worker.onmessage = ({ data }) => {
    if (data.state) tell(data.state);
    else if (data.failed) reject(new Error(data.failed));
    else if (data.ready) resolve({ ask });
    else open.shift()(data.answer);
  };
});
