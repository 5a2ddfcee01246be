// Buffers, compressed streams, scripts and typed arrays in JavaScript, in as many rounds as the argument says.
//
// Objects and short strings are in V8's own heap, which comes from mmap. What goes through malloc: the memory of
// buffers and typed arrays, long strings that are made of buffers, the state of zlib and of hashes, and the arenas of
// the parser and the compilers.
'use strict';
const crypto = require('crypto');
const vm = require('vm');
const zlib = require('zlib');

const rounds = Number(process.argv[2]);
let state = 12345;
const digest = crypto.createHash('sha1');

function randomBelow(n) {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return (state >> 8) % n;
}

function required(condition, what) {
  if (condition) return;
  console.log('FAILED: ' + what);
  process.exit(1);
}

// Messages in buffers of their own, kept in a window, copied, joined and cut.
function buffers() {
  const window = new Array(500).fill(null);
  let sum = 0;
  for (let i = 0; i < 40000; i++) {
    const at = randomBelow(window.length);
    const old = window[at];
    if (old !== null) {
      required(old[0] === old.length % 251 && old[old.length - 1] === old[0], 'the content of a buffer');
      sum = (sum + old.length) % 1000003;
    }
    const size = randomBelow(16) === 0 ? 1 + randomBelow(60000) : 1 + randomBelow(2000);
    const buffer = Buffer.allocUnsafeSlow(size);
    buffer[0] = buffer[size - 1] = size % 251;
    window[at] = buffer;
    if (i % 64 === 0) sum = (sum + Buffer.concat(window.slice(at, at + 10).filter((b) => b !== null)).length) % 1000003;
  }
  digest.update(String(sum));
}

function records() {
  const list = [];
  for (let i = 0; i < 2000; i++) {
    const tags = Array.from({ length: randomBelow(6) }, () => 't' + randomBelow(1000));
    list.push({ id: i, name: 'name ' + randomBelow(100000), tags });
  }
  return list;
}

// JSON as it is stored: text, bytes, compressed bytes, and back.
function storage() {
  for (let i = 0; i < 12; i++) {
    const list = records();
    const bytes = Buffer.from(JSON.stringify(list));
    const parts = [];
    for (let at = 0; at < bytes.length; at += 16384) {
      parts.push(zlib.deflateSync(bytes.subarray(at, at + 16384), { level: 1 }));
    }
    const back = Buffer.concat(parts.map((part) => zlib.inflateSync(part)));
    required(back.equals(bytes), 'zlib');
    required(JSON.parse(back.toString()).length === list.length, 'JSON');
    digest.update(bytes);
  }
}

// Each script is parsed and compiled, and some of it optimised.
function scripts() {
  for (let i = 0; i < 150; i++) {
    let source = '(function () { const result = [];\n';
    for (let f = 0; f < 12; f++) {
      source += `function f${f}(a, b) {
        let s = ${i + f};
        for (let i = 0; i < a; i++) { s = (s * 31 + b[i % b.length] + ${randomBelow(1000)}) % 65521; }
        return { sum: s, text: 'f${f}' + s, list: [a, s].map((x) => x + ${f}) };
      }
      result.push(f${f}(${20 + f}, [1, 2, ${f}]).text);\n`;
    }
    digest.update(vm.runInThisContext(source + 'return result.join(); })()'));
  }
}

// Small hashes and ciphers: OpenSSL allocates a state for each.
function hashes() {
  const key = Buffer.alloc(16, 7);
  let last = Buffer.from('start');
  for (let i = 0; i < 8000; i++) {
    last = crypto.createHash(i % 2 === 0 ? 'sha256' : 'md5').update(last).update(String(i)).digest();
    if (i % 8 === 0) {
      const cipher = crypto.createCipheriv('aes-128-cbc', key, key);
      last = Buffer.concat([cipher.update(last), cipher.final()]);
    }
  }
  digest.update(last);
}

function matrices() {
  let columns = [];
  for (let i = 0; i < 300; i++) {
    const column = new Float64Array(500 + randomBelow(3000));
    for (let j = 0; j < column.length; j++) column[j] = randomBelow(1000);
    columns.push(column);
    if (columns.length > 100) columns = columns.slice(50).map((c) => c.slice(0, c.length - 1));
  }
  digest.update(String(columns.reduce((sum, column) => sum + column.reduce((a, b) => a + b, 0), 0)));
}

for (let i = 0; i < rounds; i++) {
  buffers();
  storage();
  scripts();
  hashes();
  matrices();
}
console.log(`node ${rounds}: ${digest.digest('hex')}`);
