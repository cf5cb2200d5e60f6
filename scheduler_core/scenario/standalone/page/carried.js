// What a carried scenario is in a browser: SHA-256 (crypto.subtle is missing on file:// and plain http), and unpacking
// with a bound. One home for the page that opens a link and for standalone files.
const carried = (() => {
  const K = new Uint32Array(64), H = new Uint32Array(8);
  // The round constants: fractions of cube roots, and of square roots, of the first primes.
  for (let n = 2, count = 0; count < 64; n++) {
    let prime = true;
    for (let i = 2; i * i <= n && prime; i++) prime = n % i !== 0;
    if (!prime) continue;
    if (count < 8) H[count] = ((Math.sqrt(n) % 1) * 0x100000000) | 0;
    K[count++] = ((Math.cbrt(n) % 1) * 0x100000000) | 0;
  }
  const turn = (x, n) => (x >>> n) | (x << (32 - n));

  const sha256 = bytes => {
    const size = bytes.length, whole = ((size + 9 + 63) >> 6) << 6;
    const hash = Uint32Array.from(H), w = new Uint32Array(64);
    const last = new Uint8Array(128), from = (size >> 6) << 6;
    last.set(bytes.subarray(from));
    last[size - from] = 0x80;
    new DataView(last.buffer).setUint32(whole - from - 8, Math.floor(size / 0x20000000));
    new DataView(last.buffer).setUint32(whole - from - 4, (size << 3) >>> 0);
    for (let at = 0; at < whole; at += 64) {
      const block = at < from ? bytes.subarray(at, at + 64) : last.subarray(at - from, at - from + 64);
      for (let i = 0; i < 16; i++) {
        w[i] = (block[4 * i] << 24) | (block[4 * i + 1] << 16) | (block[4 * i + 2] << 8) | block[4 * i + 3];
      }
      for (let i = 16; i < 64; i++) {
        const a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ (a >>> 3)) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ (b >>> 10));
      }
      let [a, b, c, d, e, f, g, h] = hash;
      for (let i = 0; i < 64; i++) {
        const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
        const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        h = g; g = f; f = e; e = (d + one) | 0; d = c; c = b; b = a; a = (one + two) | 0;
      }
      [a, b, c, d, e, f, g, h].forEach((value, i) => { hash[i] += value; });
    }
    return [...hash].map(value => value.toString(16).padStart(8, '0')).join('');
  };

  const inflate = async (text, most) => {
    if (typeof DecompressionStream === 'undefined') throw new Error('this browser is too old to unpack it');
    let bytes;
    try {
      bytes = Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), letter => letter.charCodeAt(0));
    } catch { throw new Error('it cannot be unpacked: it was cut or changed on its way'); }
    const parts = [];
    let size = 0;
    try {
      const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate')).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        size += value.length;
        if (size > most) { reader.cancel().catch(() => {}); break; }
        parts.push(value);
      }
    } catch { throw new Error('it cannot be unpacked: it was cut or changed on its way'); }
    if (size > most) throw new Error(`unpacked it has more than ${most.toLocaleString('en')} bytes, which are the most that are read`);
    const whole = new Uint8Array(size);
    let at = 0;
    for (const part of parts) { whole.set(part, at); at += part.length; }
    return whole;
  };

  // The scenario of a line `1.DIGEST.PAYLOAD`, its digest proved; an error that says what is wrong otherwise.
  const unfold = async (line, most) => {
    const found = /^([0-9]{1,4})\.([0-9a-f]{64})\.([A-Za-z0-9_-]+)$/.exec(line);
    if (!found) throw new Error('this is no carried scenario, or not all of it');
    const [, version, digest, payload] = found;
    if (version !== '1') throw new Error(`it is of version ${version} of the form, and version 1 is read here: a newer playground reads it`);
    const bytes = await inflate(payload, most), end = bytes.indexOf(10);
    if (end < 0) throw new Error('it does not hold a scenario and its words: it was changed');
    const canonical = bytes.subarray(0, end), actual = sha256(canonical);
    if (actual !== digest) throw new Error(`it says that its digest is ${digest}, and it is ${actual}: it was changed`);
    const read = part => JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(part));
    try {
      const said = read(bytes.subarray(end + 1));
      return { digest, scenario: read(canonical), document: said.document, note: said.note || '', opensAt: said.opensAt ?? null };
    } catch { throw new Error('what it holds cannot be read: it was changed'); }
  };

  return { sha256, inflate, unfold };
})();
