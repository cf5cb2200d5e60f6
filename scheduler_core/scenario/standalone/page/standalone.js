// A replay in one file. Everything a person wrote is put on the page as text, never as markup.
(async () => {
  const MOST = 64 * 2 ** 20, CARDS = 40, ROWS = 300, TICKS = 160;
  const byId = id => document.getElementById(id);
  const el = (tag, attributes = {}, ...children) => {
    const svg = ['svg', 'rect', 'text', 'g', 'title', 'line'].includes(tag);
    const made = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? '' : value);
    }
    made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== ''));
    return made;
  };
  const number = value => Number(value).toLocaleString('en');
  const plural = (count, word) => `${number(count)} ${word}${count === 1 ? '' : 's'}`;
  const panel = (id, title, aside, ...body) => el('section', { class: 'panel', id, 'aria-labelledby': `h-${id}` },
    el('header', {}, el('h2', { id: `h-${id}` }, title), el('span', { class: 'sub' }, aside || '')), body);
  const table = (label, head, rows) => el('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': label },
    el('table', {}, el('caption', { class: 'vh' }, label), el('thead', {}, el('tr', {}, head)), el('tbody', {}, rows)));
  const th = (words, attributes = {}) => el('th', { scope: 'col', ...attributes }, words);
  const broken = name => name.split(/(?=[A-Z][a-z])/).flatMap((part, i) => (i ? [el('wbr'), part] : [part]));

  const theme = byId('theme'), root = document.documentElement;
  const forced = new URLSearchParams(location.search).get('theme');
  if (forced === 'light' || forced === 'dark') root.dataset.theme = forced;
  theme.hidden = false;
  theme.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  });

  const proof = byId('proof'), main = byId('main');
  const tell = (state, lead, words) => {
    proof.className = `ro ${state}`;
    proof.dataset.state = state;
    proof.replaceChildren(el('p', {}, el('b', {}, lead), ' ', words));
  };
  let record, scenario;
  try {
    const box = byId('record');
    scenario = await carried.unfold(byId('scenario').textContent.trim(), MOST);
    const bytes = await carried.inflate(box.textContent.trim(), MOST);
    const actual = carried.sha256(bytes);
    if (actual !== box.dataset.sha256) throw new Error(`the record says that its digest is ${box.dataset.sha256}, and it is ${actual}: it was changed`);
    record = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    const decided = carried.sha256(new TextEncoder().encode(record.cycles.map(cycle => cycle.digest).join('\n')));
    if (record.digest !== scenario.digest) throw new Error('its record is of another scenario: it was put together anew');
    if (decided !== record.decisionsDigest) throw new Error('its decisions are not those of its digest: it was changed');
    const named = byId('digest').textContent.replace('sha256 ', '');
    if (named !== scenario.digest) throw new Error('the digest at its top is not that of its scenario: it was changed');
  } catch (error) {
    tell('bad', 'Not shown.', `This file is not as it was saved: ${error.message}.`);
    main.replaceChildren();
    return;
  }

  const cycles = record.cycles, names = record.names, last = cycles.length;
  document.title = record.title;
  document.querySelector('h1').textContent = record.title;
  tell('info', 'Recorded, not run here.', [
    'The scenario has the digest it names, and its ', plural(last, 'decision'), ' have theirs (',
    el('span', { class: 'mono' }, record.decisionsDigest.slice(0, 12)), '): checked just now, in this file. ',
    'A playground runs it again and compares.']);
  if (main.dataset.open) {
    const host = new URL(main.dataset.open).host;
    document.querySelector('header .row').prepend(el('a', { class: 'btn primary', href: main.dataset.open, rel: 'noreferrer' }, `Open at ${host}`));
  }

  const states = number => {
    const nodes = new Map(), pods = new Map();
    let queue = {};
    for (const change of record.boards) {
      if (change.cycle > number) break;
      for (const [into, from] of [[nodes, change.nodes], [pods, change.pods]]) {
        for (const [key, value] of Object.entries(from || {})) value ? into.set(key, value) : into.delete(key);
      }
      queue = change.queue;
    }
    return { nodes, pods, queue };
  };
  const WORDS = {
    bound: ['ok', '✓', 'bound'], unschedulable: ['bad', '✕', 'finds no node'], preempting: ['pre', '⇄', 'evicts others'],
    waiting: ['wait', '‖', 'waits at Permit'], binding: ['wait', '‖', 'waits for its Binding'],
    expired: ['warn', '!', 'expired'], error: ['warn', '!', 'error'],
  };
  const outcome = cycle => WORDS[cycle.outcome] || WORDS.error;
  const since = ms => (ms < 60000 ? `${(ms / 1000).toFixed(ms % 1000 ? 1 : 0)} s` : `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`);
  const cores = milli => `${(milli / 1000).toFixed(milli % 1000 ? 1 : 0)}`;
  const size = bytes => { const gib = bytes / 2 ** 30; return `${gib >= 10 ? Math.round(gib) : Math.round(gib * 10) / 10} Gi`; };
  const short = key => key.slice(key.indexOf('/') + 1);

  // ---- the strip of all decisions
  const shown = el('b', { class: 'num', id: 'shown' }), slide = el('input', {
    type: 'range', min: 1, max: Math.max(last, 1), 'aria-label': 'Decision', oninput: () => go(Number(slide.value)),
  });
  const nextBad = from => cycles.findIndex((cycle, i) => i >= from && cycle.outcome !== 'bound') + 1;
  const step = (words, label, key, to) => el('button', { type: 'button', class: 'btn', 'aria-label': label, 'data-key': key, onclick: () => go(to()) }, words);
  let current = 0;
  const ticks = el('svg', { class: 'ticks', role: 'img', preserveAspectRatio: 'none', viewBox: `0 0 ${TICKS * 4} 28`,
    'aria-label': `${plural(last, 'decision')}: ${plural(cycles.filter(cycle => cycle.outcome === 'bound').length, 'pod')} bound at once` });
  const marks = Math.min(last, TICKS);
  for (let i = 0; i < marks; i++) {
    const members = cycles.slice(Math.floor((i * last) / marks), Math.floor(((i + 1) * last) / marks));
    const worst = members.find(cycle => cycle.outcome === 'preempting') || members.find(cycle => cycle.outcome !== 'bound') || members[0];
    const high = worst.outcome !== 'bound', wide = (TICKS * 4) / marks;
    ticks.append(el('rect', { class: outcome(worst)[0], x: i * wide, width: Math.max(1, wide * 0.8), y: high ? 2 : 10, height: high ? 24 : 12 }));
  }
  const here = el('rect', { class: 'here', y: 0, height: 28 });
  ticks.append(here);

  // ---- one decision
  const facts = pairs => el('dl', { class: 'facts' }, pairs.filter(([, words]) => words !== '' && words !== undefined && words !== null)
    .map(([term, words]) => el('div', {}, el('dt', {}, term), el('dd', {}, words))));
  const decision = cycle => {
    const [css, sign, words] = outcome(cycle);
    return panel('decision', `Decision ${number(cycle.n)}`, cycle.pod, el('div', { class: 'body' },
      el('p', { class: `verdict ${css}` }, el('span', { 'aria-hidden': 'true' }, sign), el('span', {}, cycle.headline || words)),
      facts([
        ['Attempt', cycle.attempt], ['Virtual time', since(cycle.atMs || 0)], ['Priority', number(cycle.priority || 0)],
        ['Nodes', `${number(cycle.nFeasible || 0)} of ${number(cycle.nNodes || 0)} feasible`], ['Node', cycle.node],
        ['Nominated', cycle.nominated], ['Draw', cycle.tie && `one of ${number(cycle.tie[0])} equals`],
        ['Evicted', (cycle.victims || []).join(', ')], ['Profile', cycle.profile === 'default-scheduler' ? '' : cycle.profile],
      ]),
      cycle.message ? [el('h3', {}, 'What Kubernetes says'), el('pre', { tabindex: 0 }, cycle.message)] : null,
      cycle.error && cycle.error !== cycle.message ? [el('h3', {}, 'The error'), el('pre', { tabindex: 0 }, cycle.error)] : null,
      (cycle.permit || []).map(([plugin, said, why]) => el('p', {}, el('b', {}, 'Permit '), `${plugin}: ${said}${why ? ` (${why})` : ''}`)),
      (cycle.extenders || []).map(([url, verb, said]) => el('p', {}, el('b', {}, `Extender, ${verb} `), `${url}: ${said}`)),
      el('p', { class: 'points' }, (cycle.points || []).filter(([, state]) => state !== 'not reached')
        .map(([point, state, detail]) => el('span', { class: state === 'failed' ? 'bad' : '' }, `${point}${detail ? `: ${detail}` : ''}`))),
      el('p', { class: 'sub mono digest' }, cycle.digest)));
  };

  // ---- the board
  let by = 'outcome';
  const verdicts = cycle => {
    const found = new Map();
    for (const [plugin, , reasons, nodes] of cycle.filter?.groups || []) {
      nodes.forEach(place => found.set(names[place], ['rejected', reasons.join(', ') || plugin, (plugin || '?')[0]]));
    }
    for (const place of cycle.filter?.feasible || []) found.set(names[place], ['feasible', 'feasible', '✓']);
    if (cycle.node) found.set(cycle.node, ['chosen', 'chosen', '+']);
    return found;
  };
  const bar = (used, of, label) => el('svg', { class: 'bar', role: 'img', 'aria-label': label },
    el('rect', { class: 'all', width: '100%', height: '100%', rx: 3 }),
    el('rect', { class: used > of ? 'over' : 'used', width: `${of ? Math.min(100, (100 * used) / of) : 0}%`, height: '100%', rx: 3 }));
  const board = (cycle, { nodes, pods }) => {
    const on = new Map([...nodes.keys()].map(name => [name, { cpu: 0, memory: 0, pods: [], nominated: 0 }]));
    for (const [key, [place, state, cpu, memory]] of pods) {
      const use = on.get(names[place]);
      if (!use || state === 'ended') continue;
      if (state === 'nominated') { use.nominated += 1; continue; }
      use.cpu += cpu; use.memory += memory; use.pods.push([key, state]);
    }
    const zones = new Map(), found = verdicts(cycle);
    for (const [name, node] of nodes) zones.set(node[0], [...(zones.get(node[0]) || []), name]);
    const card = name => {
      const [, cpu, memory, , state] = nodes.get(name), use = on.get(name), [css, words] = found.get(name) || ['', ''];
      return el('article', { class: `node ${css}` }, el('h4', { title: name }, name),
        el('p', { class: 'why' }, state || (css === 'chosen' ? `+ ${short(cycle.pod)}` : words) || (use.nominated ? 'nominated' : '')),
        el('p', { class: 'rl' }, 'cpu ', el('b', {}, cores(use.cpu)), ` of ${cores(cpu)}`),
        bar(use.cpu, cpu, `cpu ${cores(use.cpu)} of ${cores(cpu)} requested`),
        el('p', { class: 'rl' }, 'memory ', el('b', {}, size(use.memory)), ` of ${size(memory)}`),
        bar(use.memory, memory, `memory ${size(use.memory)} of ${size(memory)} requested`),
        el('details', {}, el('summary', {}, plural(use.pods.length, 'pod')),
          el('ul', {}, use.pods.slice(0, 110).map(([key, state_]) => el('li', {}, short(key), state_ === 'on' ? '' : ` (${state_})`)))));
    };
    const square = (name, i) => {
      const [, cpu, memory, , state] = nodes.get(name), use = on.get(name), [css, words, letter] = found.get(name) || ['', 'not looked at', '·'];
      const full = by === 'cpu' ? use.cpu / (cpu || 1) : use.memory / (memory || 1);
      const look = by === 'outcome' ? css : `h${Math.min(5, Math.floor(full * 5.999))}`;
      const said = by === 'outcome' ? words : `${Math.round(100 * full)}% of ${by} requested`;
      const x = (i % 20) * 23, y = Math.floor(i / 20) * 23;
      return el('g', { class: look }, el('title', {}, `${name}: ${state ? `${state}, ` : ''}${said}`),
        el('rect', { x, y, width: 20, height: 20, rx: 3 }), by === 'outcome' ? el('text', { x: x + 10, y: y + 14 }, letter) : null);
    };
    const zone = ([name, members]) => {
      const feasible = members.filter(node => ['feasible', 'chosen'].includes(found.get(node)?.[0])).length;
      const aside = `${plural(members.length, 'node')}${cycle.filter ? `, ${number(feasible)} feasible` : ''}`;
      return el('section', { class: 'zone', 'aria-label': name || 'Nodes' }, el('h3', {}, name || (zones.size > 1 ? 'no zone' : 'Nodes'), ' ', el('span', { class: 'sub' }, aside)),
        nodes.size <= CARDS ? el('div', { class: 'nodes' }, members.map(card))
          : el('svg', { class: 'map', role: 'img', 'aria-label': `${name || 'Nodes'} by ${by}: ${aside}`, viewBox: `0 0 457 ${Math.ceil(members.length / 20) * 23}` }, members.map(square)));
    };
    const views = nodes.size > CARDS ? el('span', { class: 'row' }, ['outcome', 'cpu', 'memory'].map(one => el('button', {
      type: 'button', class: 'btn', id: `by-${one}`, 'aria-pressed': String(one === by), onclick: () => { by = one; draw(); byId(`by-${one}`).focus(); },
    }, one === 'outcome' ? 'By outcome' : one))) : null;
    return panel('board', 'Board', `after decision ${number(cycle.n)}: ${plural(nodes.size, 'node')}, ${plural(pods.size, 'pod')}`,
      el('div', { class: 'body' }, views, [...zones].sort(([a], [b]) => (a < b ? -1 : 1)).map(zone)));
  };

  // ---- filter, score, preemption
  let everyNode = false;
  const cell = (css, sign, words) => el('td', { class: `c ${css}` }, el('span', { 'aria-hidden': 'true' }, sign), words ? el('span', { class: 'vh' }, words) : null);
  const filter = cycle => {
    const { plugins, skipped, feasible, groups, also } = cycle.filter, skips = new Set(skipped);
    const others = Object.fromEntries(Object.entries(also || {}).map(([plugin, nodes]) => [plugin, new Set(nodes)]));
    const line = (places, stop, reason, amounts) => el('tr', { class: stop === null ? 'fits' : '' },
      el('th', { scope: 'row' }, places.length === 1 ? names[places[0]] : el('b', {}, plural(places.length, 'node')),
        places.length > 1 ? el('span', { class: 'sub' }, places.slice(0, 3).map(place => names[place]).join(', ') + (places.length > 3 ? ' …' : '')) : null,
        stop === null ? null : el('span', { class: 'bad small', 'aria-hidden': 'true' }, reason)),
      plugins.map((plugin, i) => {
        const at = stop === null ? plugins.length : plugins.indexOf(stop);
        if (skips.has(plugin)) return cell('sk', '', 'skipped');
        if (i < at) return cell('ok', '✓', 'passes');
        if (i === at) return cell('bad', '✕', 'rejects');
        return others[plugin]?.has(places[0]) ? cell('warn', '✕', 'would reject, too') : cell('sub', '·', 'not reached');
      }),
      el('td', { class: 'why' }, stop === null ? 'feasible' : reason, amounts ? el('span', { class: 'sub' }, amounts) : null));
    const split = places => (everyNode ? places.map(place => [place]) : places.length ? [places] : []);
    const rows = split(feasible).map(places => line(places, null, '', ''));
    for (const [plugin, , reasons, nodes, amounts] of groups) {
      split(nodes).forEach((places, i) => rows.push(line(places, plugin || 'PreFilter', `${plugin ? '' : 'PreFilter or extender: '}${reasons.join(', ')}`, places.length === 1 ? amounts[i] : '')));
    }
    const cut = rows.length > ROWS ? el('p', { class: 'sub body' }, `and ${number(rows.length - ROWS)} more rows`) : null;
    const all = names.length > 1 ? el('button', { type: 'button', class: 'btn', id: 'every', 'aria-pressed': String(everyNode), onclick: () => { everyNode = !everyNode; draw(); byId('every').focus(); } }, 'Every node') : null;
    const made = panel('filter', 'Filter, plugin by plugin', `${number(feasible.length)} of ${number(cycle.nNodes || 0)} nodes are feasible`,
      table('Filter matrix', [th('Nodes of one outcome'), plugins.map(plugin => th(broken(plugin), { class: skips.has(plugin) ? 'sk' : '' })), th('Reason')], rows.slice(0, ROWS)), cut);
    made.querySelector('header').append(all || '');
    return made;
  };
  const score = cycle => {
    const { plugins, rows } = cycle.score;
    return panel('score', 'Score', `${plural(rows.length, 'node')} scored; points times weight`,
      table('Scores', [th('Node'), th('Total', { class: 'r' }), plugins.map(([plugin, weight]) => th([...broken(plugin), weight === 1 ? '' : ` × ${weight}`], { class: 'r' }))],
        rows.slice(0, ROWS).map(([place, total, points]) => el('tr', { class: names[place] === cycle.node ? 'fits' : '' },
          el('th', { scope: 'row' }, names[place], names[place] === cycle.node ? el('span', { class: 'sub' }, 'chosen') : null), el('td', { class: 'r' }, el('b', {}, number(total))),
          points.map((point, i) => el('td', { class: 'r' }, number(point * plugins[i][1])))))),
      rows.length > ROWS ? el('p', { class: 'sub body' }, `and ${number(rows.length - ROWS)} more nodes`) : null);
  };
  const spaced = name => name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
  const preemption = cycle => {
    const found = cycle.preemption;
    if (!found.candidates.length) return found.why ? panel('preemption', 'Preemption', '', el('p', { class: 'body' }, found.why)) : null;
    return panel('preemption', 'Preemption', `${plural(found.nCandidates, 'candidate')}${found.chosen ? `; ${found.chosen} was taken` : ''}${found.decidedBy ? `, by ${spaced(found.decidedBy)}` : ''}`,
      table('Candidates of the preemption', [th('Node'), th('Would be evicted'), th('Budgets violated', { class: 'r' }), th('Ruled out by')],
        found.candidates.map(([place, victims, violations, out]) => el('tr', { class: names[place] === found.chosen ? 'fits' : '' },
          el('th', { scope: 'row' }, names[place]), el('td', {}, victims.join(', ') || 'none'), el('td', { class: 'r' }, violations),
          el('td', {}, names[place] === found.chosen ? 'taken' : spaced(out))))),
      found.nCandidates > found.candidates.length ? el('p', { class: 'sub body' }, `and ${number(found.nCandidates - found.candidates.length)} more candidates`) : null);
  };

  // ---- the pod's story, the queue, all decisions
  const link = (cycle, words) => el('a', { href: `#${cycle}` }, words);
  const story = pod => {
    const told = [];
    const becomes = { on: 'runs on', ends: 'is being ended on', reserved: 'is reserved on', nominated: 'waits for room on', ended: 'has ended on' };
    for (const cycle of cycles) {
      if (cycle.pod === pod) told.push([cycle.n, 0, `${outcome(cycle)[1]} ${cycle.headline || outcome(cycle)[2]}`]);
      if ((cycle.victims || []).includes(pod)) told.push([cycle.n, 1, `⇄ evicted for ${cycle.pod}`]);
    }
    for (const change of record.boards) {
      if (!change.pods || !(pod in change.pods)) continue;
      const now = change.pods[pod];
      if (!now) told.push([change.cycle, 2, 'is gone']);
      else if (becomes[now[1]]) told.push([change.cycle, 2, `${becomes[now[1]]} ${names[now[0]]}`]);
    }
    told.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return panel('story', `Story of ${short(pod)}`, pod, el('ol', { class: 'body story' }, told.slice(0, 200).map(([n, , words]) => el('li', {}, link(n, `#${number(n)}`), ` ${words}`))));
  };
  const LANES = { permit: 'waits at Permit', foreign: 'not simulated' };
  const queue = lanes => panel('queue', 'Queue', 'after this decision', el('div', { class: 'body lanes' }, Object.keys(lanes).length
    ? Object.entries(lanes).map(([lane, [count, pods]]) => el('section', {}, el('h3', {}, `${LANES[lane] || lane} `, el('span', { class: 'sub' }, number(count))),
      el('ul', {}, pods.map(pod => el('li', {}, short(pod)))), count > pods.length ? el('p', { class: 'sub' }, `and ${number(count - pods.length)} more`) : null))
    : el('p', {}, 'No pod waits.')));
  const decisions = panel('decisions', 'All decisions', plural(last, 'decision'), el('div', { class: 'scroll tall', tabindex: 0, role: 'group', 'aria-label': 'All decisions' },
    el('ol', { class: 'story body' }, cycles.slice(0, 2000).map(cycle => el('li', { id: `d${cycle.n}` }, link(cycle.n, `#${number(cycle.n)}`), ' ', el('span', { class: outcome(cycle)[0], 'aria-hidden': 'true' }, outcome(cycle)[1]), ` ${cycle.headline || cycle.pod}`)))));

  // ---- where every pod was, in virtual time; the line is the decision that is shown
  const { toMs, lanes: spans, count: pods } = record.timeline, whole = Math.max(1, toMs);
  const STATE = { queued: 'std', backoff: 'warn', gated: 'sub', unschedulable: 'bad', nominated: 'pre', permit: 'wait', binding: 'wait', starting: 'wait', running: 'ok', terminating: 'warn' };
  const at = el('line', { y1: 0, y2: '100%', class: 'at' });
  const timeline = !toMs ? null : panel('timeline', 'Timeline', `0 s to ${since(toMs)} of virtual time, the longest waits first; the line is this decision`,
    el('div', { class: 'body times' }, el('svg', { class: 'cursor', 'aria-hidden': 'true' }, at), Object.entries(spans).map(([pod, stays]) => {
      const words = stays.map(([state, from, to, place]) => `${state}${place === null ? '' : ` on ${names[place]}`} ${since(to - from)}`).join(', ');
      return el('div', { class: 'time' }, el('span', { title: pod }, short(pod)),
        el('svg', { role: 'img', 'aria-label': words || 'tried, at one moment alone', viewBox: `0 0 ${whole} 12`, preserveAspectRatio: 'none' },
          stays.map(([state, from, to, place]) => el('rect', { class: STATE[state], x: from, width: to - from, height: 12 },
            el('title', {}, `${state}${place === null ? '' : ` on ${names[place]}`}, ${since(to - from)}`)))),
        el('span', { class: 'sub' }, words));
    }), pods > Object.keys(spans).length ? el('p', { class: 'sub' }, `and ${number(pods - Object.keys(spans).length)} more pods`) : null));
  const said = [];
  if (record.note || record.lesson) {
    said.push(el('section', { class: 'said' }, record.lesson ? el('p', {}, record.lesson) : null,
      record.note ? el('blockquote', { id: 'note' }, record.note) : null, record.note ? el('p', { class: 'sub' }, 'Note of who shared it: said, not checked.') : null));
  }
  const ending = [];
  if (record.findings.length) {
    ending.push(panel('expectations', 'Expectations', `${record.findings.filter(one => one.holds).length} of ${record.findings.length} hold`, el('ul', { class: 'body story' },
      record.findings.map(one => el('li', {}, el('span', { class: one.holds ? 'ok' : 'bad' }, one.holds ? '✓ holds ' : '✕ does not hold '), one.sentence)))));
  }
  if (record.notes.length) ending.push(panel('noted', 'Noted while it ran', '', el('ul', { class: 'body story' }, record.notes.map(one => el('li', {}, one)))));
  const place = el('div', { class: 'stack', id: 'moment' });

  const draw = () => {
    const cycle = cycles[current - 1], state = states(cycle.n);
    shown.textContent = `Decision ${number(current)} of ${number(last)}`;
    slide.value = current;
    slide.setAttribute('aria-valuetext', `Decision ${current}: ${cycle.headline || cycle.pod}`);
    here.setAttribute('x', ((current - 1) * TICKS * 4) / last);
    here.setAttribute('width', Math.max(3, (TICKS * 4) / last));
    place.replaceChildren(...[
      el('div', { class: 'two' }, board(cycle, state), decision(cycle)),
      cycle.filter ? filter(cycle) : null, cycle.score ? score(cycle) : null, cycle.preemption ? preemption(cycle) : null,
      el('div', { class: 'two' }, story(cycle.pod), queue(state.queue)),
    ].filter(Boolean));
    document.querySelector('#decisions [aria-current]')?.removeAttribute('aria-current');
    byId(`d${cycle.n}`)?.setAttribute('aria-current', 'true');
    for (const end of ['x1', 'x2']) at.setAttribute(end, `${(100 * (cycle.atMs || 0)) / whole}%`);
  };
  const go = to => {
    if (!Number.isInteger(to) || to < 1 || to > last || to === current) return;
    current = to;
    draw();
    try { history.replaceState(null, '', `#${cycles[to - 1].n}`); } catch { /* some viewers keep the address to themselves */ }
  };
  if (!last) {
    main.replaceChildren(...said, el('section', { class: 'panel' }, el('p', { class: 'body' }, 'This scheduler decided nothing in it.')), ...ending);
    return;
  }
  main.replaceChildren(...said, el('section', { class: 'panel strip', 'aria-label': 'Decisions' },
    el('div', { class: 'row' }, step('‹', 'Previous decision', '[', () => current - 1), shown, step('›', 'Next decision', ']', () => current + 1),
      el('span', { class: 'grow' }), step('Next without a node', 'Next decision without a node', 'n', () => nextBad(current) || nextBad(0))), ticks, slide), place, ...[timeline].filter(Boolean), decisions, ...ending);
  const numbered = () => cycles.findIndex(cycle => String(cycle.n) === location.hash.slice(1)) + 1;
  addEventListener('hashchange', () => go(numbered()));
  document.addEventListener('keydown', e => {
    if (e.target.closest('input') && e.key !== '[' && e.key !== ']') return;
    if (!e.metaKey && !e.ctrlKey && !e.altKey) document.querySelector(`[data-key="${CSS.escape(e.key.toLowerCase())}"]`)?.click();
  });
  go(numbered() || Math.min(record.opensAt || last, last));
  document.documentElement.dataset.ready = 'true';
})();
