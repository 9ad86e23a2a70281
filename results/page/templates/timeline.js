// The timeline: an overview of the whole run, and below it a window of lanes, redrawn on each move. It examines only operations in
// the window (binary search in each lane), and draws operations on one pixel once. So tens of thousands of operations stay fluid.
// Texts of the history reach the page as text or as canvas drawing, never as markup.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const TYPES = ["ok", "info", "fail", "refused"];
  const RULER = 20, GROUP = 18, GAP = 2, NAMES = "10.5px system-ui, sans-serif";
  const LEAST_LANE = 4, MOST_HEIGHT = 1500; // of a timeline with many nodes; all of them are in view
  const STRIP = data.kinds.length > 6 ? 12 : 15;
  const count = data.s.length;
  const start = new Float64Array(count), end = new Float64Array(count);
  for (let i = 0, at = 0; i < count; i++) {
    at += data.s[i];
    start[i] = at;
    end[i] = at + Math.max(0, data.d[i]);
  }
  const total = Math.max(1, data.end);
  const marked = new Set(data.marked);

  // Rows: a header for each node, then its lanes. If there are many lanes, only lanes with an operation (of the selected key) in
  // the window get a row. The rows are as high as the space allows, so that no node is below the edge.
  const laneOps = data.lanes.map(() => []);
  for (let i = 0; i < count; i++) laneOps[data.l[i]].push(i);
  const crowded = data.lanes.length > 60;
  const rows = new Array(data.lanes.length).fill(-1);
  const groupTop = new Map();
  const tallest = data.lanes.length <= 30 || crowded ? 18 : 15;
  let laneHeight = tallest, contentHeight = 0;
  const groups = [...data.nodes.keys(), ...(data.lanes.includes(null) ? [null] : [])];
  const lanesOf = new Map(groups.map((node) => [node, []]));
  data.lanes.forEach((node, lane) => lanesOf.get(node).push(lane));

  function layOut() {
    const seen = (lane) => {
      const ops = laneOps[lane];
      for (let n = firstVisible(ops); n < ops.length && start[ops[n]] <= to; n++) {
        if (wanted(ops[n]) || marked.has(ops[n])) return true;
      }
      return false;
    };
    const kept = data.lanes.map((_, lane) => !crowded || seen(lane));
    const room = height - top - groups.length * GROUP - 6;
    laneHeight = Math.max(LEAST_LANE, Math.min(tallest, Math.floor(room / Math.max(1, kept.filter(Boolean).length))));
    contentHeight = 0;
    for (const node of groups) {
      groupTop.set(node, contentHeight);
      contentHeight += GROUP;
      for (const lane of lanesOf.get(node)) {
        rows[lane] = kept[lane] ? contentHeight : -1;
        if (kept[lane]) contentHeight += laneHeight;
      }
    }
    spacer.style.height = `${Math.max(0, top + contentHeight + 6 - height)}px`;
  }

  const connectionsTop = RULER + (data.kinds.length + data.leaders.length) * STRIP;
  const top = connectionsTop + (data.connections ? STRIP : 0) + 4;

  const scroller = document.getElementById("lanes");
  const canvas = scroller.querySelector("canvas");
  const spacer = scroller.querySelector("div");
  const overview = document.getElementById("overview");
  const tip = document.getElementById("tip");
  const keySelect = document.getElementById("key");
  const functionSelect = document.getElementById("function");
  const valueInput = document.getElementById("value");
  const context = canvas.getContext("2d");
  const small = overview.getContext("2d");
  context.font = NAMES;
  const widest = Math.max(...["overview", ...(data.connections ? ["connections"] : []), ...data.kinds, ...data.leaders.map((each) => each.of)].map((name) => context.measureText(name).width));
  const GUTTER = Math.round(Math.max(84, Math.min(150, widest + 12)));
  scroller.dataset.gutter = GUTTER;
  let width = 0, height = 0, from = 0, to = total, chosen = null, colours = {}, hovered = -1, queued = false;

  // The user's selection: one key, one function, one value. A value of the verdict has a list of its operations. Any other value
  // is searched in the shown arguments and results.
  const subjects = new Map(data.subjects.map(([label, places]) => [label, new Set(places)]));
  let wantedFunction = null, wantedValue = "";
  const holds = (value) => Array.isArray(value) ? value.some(holds) : value !== null && String(value) === wantedValue;
  function wanted(i) {
    if (chosen !== null && data.k[i] !== chosen) return false;
    if (wantedFunction !== null && data.f[i] !== wantedFunction) return false;
    if (wantedValue === "") return true;
    const known = subjects.get(wantedValue);
    return known ? known.has(i) : holds(data.v[i]) || holds(data.a[i]);
  }

  // A canvas does not resolve CSS variables, so an element gives their values.
  function readColours() {
    const probe = document.createElement("span");
    document.body.append(probe);
    const names = ["ink", "faint", "line", "soft", "card", "accent", "invalid", ...TYPES, ...Array.from({ length: 6 }, (_, n) => `fault-${n}`)];
    for (const name of names) {
      probe.style.color = `var(--${name})`;
      colours[name] = getComputedStyle(probe).color;
    }
    probe.remove();
  }
  const faultColour = (kind) => colours[`fault-${kind % 6}`];

  function fit(target, w, h) {
    const ratio = devicePixelRatio || 1;
    target.style.width = `${w}px`;
    target.style.height = `${h}px`;
    target.width = Math.round(w * ratio);
    target.height = Math.round(h * ratio);
    target.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function resize() {
    readColours();
    const whole = (lane) => top + groups.length * GROUP + data.lanes.length * lane + 6;
    const limit = Math.max(260, Math.min(innerHeight * 0.72, 760), Math.min(whole(LEAST_LANE), MOST_HEIGHT));
    height = Math.min(whole(tallest), limit);
    scroller.style.height = `${height}px`;
    width = scroller.clientWidth;
    fit(canvas, width, height);
    fit(overview, width, 58);
    queue();
  }

  const x = (at) => GUTTER + (at - from) / (to - from) * (width - GUTTER);
  // Observations from one poll to the next; a thin mark if only one poll has it. Times without polls are empty.
  const seenFrom = (first, last) => [Math.max(GUTTER, x(first)), Math.min(width, Math.max(x(first) + 1.5, x(last)))];
  const at = (px) => from + (px - GUTTER) / (width - GUTTER) * (to - from);

  function queue() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; draw(); drawOverview(); });
  }

  function move(newFrom, newTo) {
    let span = Math.min(Math.max(newTo - newFrom, 50), total);
    from = Math.min(Math.max(newFrom, 0), total - span);
    to = from + span;
    queue();
  }

  function zoom(factor, px) {
    const pivot = at(px ?? (GUTTER + width) / 2);
    move(pivot - (pivot - from) * factor, pivot + (to - pivot) * factor);
  }

  function firstVisible(ops) {
    let low = 0, high = ops.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (end[ops[middle]] < from) low = middle + 1; else high = middle;
    }
    return low;
  }

  function draw() {
    layOut();
    const scroll = scroller.scrollTop;
    context.clearRect(0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(0, top, width, height - top);
    context.clip();
    context.translate(0, top - scroll);
    drawGrid(scroll);
    drawBands(scroll);
    drawGroups();
    const drawn = drawOperations(scroll);
    context.restore();
    drawHeader();
    drawHidden(scroll);
    scroller.dataset.drawn = drawn;
    scroller.dataset.window = `${Math.round(from)} ${Math.round(to)}`;
  }

  function ticks() {
    const step = niceStep((to - from) / Math.max(2, (width - GUTTER) / 110));
    const found = [];
    for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) found.push([x(tick), seconds(tick, step)]);
    return found;
  }

  function drawGrid(scroll) {
    context.fillStyle = colours.line;
    for (const [px] of ticks()) context.fillRect(px, scroll, 1, height);
  }

  function drawBands(scroll) {
    for (const fault of data.faults) {
      const x1 = Math.max(GUTTER, x(fault.start)), x2 = Math.min(width, x(fault.end));
      if (x2 <= x1) continue;
      context.fillStyle = faultColour(fault.kind);
      context.globalAlpha = fault.effective ? 0.06 : 0.03;
      context.fillRect(x1, scroll, x2 - x1, height);
      context.globalAlpha = fault.effective ? 0.17 : 0.06;
      data.lanes.forEach((node, lane) => {
        if (rows[lane] >= 0 && fault.targets.includes(node)) context.fillRect(x1, rows[lane], x2 - x1, laneHeight);
      });
    }
    context.globalAlpha = 1;
  }

  function drawGroups() {
    context.font = "600 11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const [node, y] of groupTop) {
      context.fillStyle = colours.line;
      context.fillRect(0, y, width, 1);
      context.fillStyle = colours.ink;
      context.fillText(fitting(node === null ? "no node" : data.nodes[node], GUTTER - 10), 4, y + GROUP / 2 + 1);
      if (node !== null) drawRoles(node, y + GROUP / 2 + 1);
      if (node !== null) drawLogs(node, y + 1);
    }
  }

  // A line of a node's log is a tick under the name of the node; its text shows on hover.
  const LOG_TICK = 3;
  function drawLogs(node, y) {
    context.fillStyle = colours.ink;
    for (const [time, at] of data.logs) {
      const px = x(time);
      if (at === node && px >= GUTTER && px <= width) context.fillRect(px - 0.5, y, 1.5, 5);
    }
  }

  function loggedAt(px, py) {
    if (py < top || px < GUTTER) return [];
    const content = py - top + scroller.scrollTop;
    for (const [node, y] of groupTop) {
      if (content < y || content >= y + GROUP) continue;
      return data.logs.filter(([time, at]) => at === node && Math.abs(x(time) - px) <= LOG_TICK).slice(0, 8);
    }
    return [];
  }

  function drawRoles(node, y) {
    for (const [time, until, , role, term] of data.roles.filter((seen) => seen[2] === node)) {
      const [x1, x2] = seenFrom(time, until);
      if (x2 <= x1) continue;
      const leads = role === "leader";
      context.globalAlpha = leads ? 0.9 : 0.6;
      context.fillStyle = role === null ? colours.fail : leads ? colours.accent : role === "candidate" ? colours.info : colours.line;
      const h = leads ? 10 : role === "follower" ? 2 : 4;
      context.fillRect(x1, y - h / 2, x2 - x1, h);
      context.globalAlpha = 1;
      const text = leads ? `leader${term === null ? "" : `, term ${term}`}` : role === null ? "no answer" : role === "follower" ? "" : role;
      context.font = "600 9.5px system-ui, sans-serif";
      if (text && x2 - x1 > context.measureText(text).width + 10) {
        context.fillStyle = leads ? colours.card : colours.faint;
        if (leads) context.fillText(text, x1 + 4, y);
        else { context.clearRect(x1 + 3, y - 5, context.measureText(text).width + 6, 10); context.fillText(text, x1 + 6, y); }
      }
    }
    context.font = "600 11px system-ui, sans-serif";
  }

  function drawOperations(scroll) {
    const perPixel = (to - from) / (width - GUTTER);
    const paths = new Map();
    const labels = [];
    let drawn = 0;
    data.lanes.forEach((_, lane) => {
      const y = rows[lane];
      if (y < 0 || y + laneHeight < scroll || y > scroll + height) return;
      const ops = laneOps[lane];
      const first = firstVisible(ops);
      const last = Object.fromEntries(TYPES.map((type) => [type, -1]));
      context.fillStyle = colours.faint;
      context.font = "9.5px system-ui, sans-serif";
      if (ops.length && laneHeight >= 9) context.fillText(fitting(`p ${data.p[ops[Math.min(first, ops.length - 1)]]}`, GUTTER - 44), 40, y + laneHeight / 2);
      for (let n = first; n < ops.length; n++) {
        const i = ops[n];
        if (start[i] > to) break;
        const type = TYPES[data.t[i]];
        const x1 = Math.max(GUTTER, x(start[i]));
        const x2 = Math.max(x1 + 1.2, Math.min(width, x(end[i])));
        if (perPixel > 300 && x2 <= last[type] + 0.6 && !marked.has(i)) continue;
        last[type] = x2;
        const dim = !wanted(i);
        const read = isRead(i);
        const h = read ? Math.max(1, Math.round(laneHeight * 0.42)) : laneHeight - (laneHeight < 9 ? 1 : 2 * GAP);
        const style = `${type} ${dim ? "dim" : read ? "read" : "full"}`;
        if (!paths.has(style)) paths.set(style, new Path2D());
        paths.get(style).rect(x1, y + (laneHeight - h) / 2, x2 - x1, h);
        drawn++;
        if (type === "info" && !dim) {
          const fade = context.createLinearGradient(x2, 0, x2 + 22, 0);
          fade.addColorStop(0, colours.info);
          fade.addColorStop(1, "rgba(0,0,0,0)");
          context.globalAlpha = 0.45;
          context.fillStyle = fade;
          context.fillRect(x2, y + (laneHeight - h) / 2, 22, h);
          context.globalAlpha = 1;
        }
        if (x2 - x1 > 38 && !dim && laneHeight >= 11) labels.push([i, x1, x2, y, read]);
      }
    });
    for (const [style, path] of paths) {
      const [type, look] = style.split(" ");
      context.fillStyle = colours[type];
      context.globalAlpha = look === "dim" ? 0.12 : look === "read" ? 0.75 : 0.92;
      context.fill(path);
    }
    context.globalAlpha = 1;
    context.font = "600 10px system-ui, sans-serif";
    for (const [i, x1, x2, y, read] of labels) {
      const text = described(i);
      const room = x2 - x1 - 8, needed = context.measureText(text).width;
      if (needed > room) continue;
      if (read) {
        context.fillStyle = colours.card;
        context.fillRect((x1 + x2 - needed) / 2 - 3, y + 2, needed + 6, laneHeight - 4);
        context.fillStyle = colours.ink;
      } else context.fillStyle = colours.card;
      context.fillText(text, (x1 + x2 - needed) / 2, y + laneHeight / 2 + 0.5);
    }
    drawMarked();
    return drawn;
  }

  function drawMarked() {
    for (const i of marked) {
      const x1 = x(start[i]), x2 = Math.max(x1 + 3, x(end[i]));
      if (x2 < GUTTER || x1 > width) continue;
      const y = rows[data.l[i]];
      if (y < 0) continue;
      context.strokeStyle = colours.invalid;
      context.lineWidth = i === data.culprit ? 2.5 : 1.5;
      context.strokeRect(Math.max(GUTTER, x1) - 1.5, y + 0.5, Math.min(width, x2) - Math.max(GUTTER, x1) + 3, laneHeight - 1);
      const text = described(i);
      context.font = "600 10.5px system-ui, sans-serif";
      const needed = context.measureText(text).width;
      if ((x2 - x1 > needed + 8 && laneHeight >= 11) || to - from > 0.5 * total) continue;
      const left = x2 + needed + 12 < width ? x2 + 5 : x1 - needed - 11;
      context.fillStyle = colours.card;
      context.fillRect(left - 1, y + laneHeight / 2 - 6, needed + 6, 12);
      context.fillStyle = colours.invalid;
      context.fillText(text, left + 2, y + laneHeight / 2 + 0.5);
    }
    if (hovered >= 0 && rows[data.l[hovered]] >= 0) {
      context.strokeStyle = colours.ink;
      context.lineWidth = 1.5;
      context.strokeRect(x(start[hovered]) - 1, rows[data.l[hovered]] + 0.5, Math.max(3, x(end[hovered]) - x(start[hovered])) + 2, laneHeight - 1);
    }
  }

  function drawHeader() {
    context.fillStyle = colours.card;
    context.fillRect(0, 0, width, top);
    context.textBaseline = "middle";
    context.font = "10.5px system-ui, sans-serif";
    for (const [px, text] of ticks()) {
      context.fillStyle = colours.line;
      context.fillRect(px, RULER - 5, 1, top);
      context.fillStyle = colours.faint;
      if (px + context.measureText(text).width < width) context.fillText(text, px + 3, RULER / 2);
    }
    context.fillStyle = colours.card;
    context.fillRect(0, 0, GUTTER - 1, top);
    data.kinds.forEach((kind, n) => {
      const y = RULER + n * STRIP;
      label(kind, y + STRIP / 2);
      const free = (left, right) => left > GUTTER && right < width
        && !data.faults.some((other) => other.kind === n && x(other.start) < right && x(other.end) > left);
      for (const fault of data.faults) {
        if (fault.kind !== n) continue;
        const x1 = Math.max(GUTTER, x(fault.start)), x2 = Math.min(width, x(fault.end));
        if (x2 <= x1) continue;
        context.globalAlpha = fault.effective ? 0.9 : 0.35;
        context.fillStyle = faultColour(n);
        context.fillRect(x1, y + 2, Math.max(2, x2 - x1), STRIP - 4);
        context.globalAlpha = 1;
        context.font = "600 9.5px system-ui, sans-serif";
        const text = `${fault.targets.map((t) => data.nodes[t]).join(" ")}${fault.effective ? "" : " (no effect seen)"}`;
        const needed = context.measureText(text).width;
        const inside = x2 - x1 > needed + 8;
        context.fillStyle = inside && fault.effective ? colours.card : colours.ink;
        if (inside) context.fillText(text, x1 + 4, y + STRIP / 2);
        else if (free(x2 + 1, x2 + needed + 6)) context.fillText(text, x2 + 4, y + STRIP / 2);
        else if (free(x1 - needed - 6, x1 - 1)) context.fillText(text, x1 - needed - 4, y + STRIP / 2);
      }
    });
    data.leaders.forEach((each, n) => drawLeaders(each, RULER + (data.kinds.length + n) * STRIP));
    if (data.connections) drawConnections(connectionsTop);
    context.fillStyle = colours.line;
    context.fillRect(0, top - 1, width, 1);
    if (data.culprit !== null && data.culprit !== undefined) drawFlag();
  }

  function label(text, y) {
    context.fillStyle = colours.faint;
    context.font = NAMES;
    context.fillText(fitting(text, GUTTER - 8), 4, y);
  }

  // A text as far as it fits into a width, in the font that is set.
  function fitting(text, room) {
    if (context.measureText(text).width <= room) return text;
    let kept = text.length - 1;
    while (kept > 1 && context.measureText(`${text.slice(0, kept)}…`).width > room) kept--;
    return `${text.slice(0, kept)}…`;
  }

  // The names of the nodes that are below the edge, because there are more lanes than the height has room for.
  function drawHidden(scroll) {
    const below = [...groupTop].filter(([, y]) => y + GROUP > scroll + height - top).map(([node]) => node === null ? "no node" : data.nodes[node]);
    if (!below.length) return;
    context.font = `600 ${NAMES}`;
    const text = fitting(`▼ below: ${below.join(" ")}`, width - 20);
    const needed = context.measureText(text).width + 12;
    context.fillStyle = colours.accent;
    context.fillRect(width - needed - 4, height - 20, needed, 16);
    context.fillStyle = colours.card;
    context.fillText(text, width - needed + 2, height - 11.5);
  }

  function drawLeaders(leaders, y) {
    label(leaders.of, y + STRIP / 2);
    leaders.led.forEach(([time, until, node, term], n) => {
      const [x1, x2] = seenFrom(time, until);
      if (x2 <= x1) return;
      context.globalAlpha = node === null ? 0.25 : n % 2 ? 0.62 : 0.9;
      context.fillStyle = node === null ? colours.faint : colours.accent;
      context.fillRect(x1, y + 2, x2 - x1, STRIP - 4);
      context.globalAlpha = 1;
      const text = node === null ? "none" : `${data.nodes[node]}${term === null ? "" : ` · term ${term}`}`;
      context.font = "600 9.5px system-ui, sans-serif";
      if (x2 - x1 > context.measureText(text).width + 8) {
        context.fillStyle = node === null ? colours.ink : colours.card;
        context.fillText(text, x1 + 4, y + STRIP / 2);
      }
    });
  }

  // What happened to connections within 0.1 s: its height and colour.
  const NOTE_STEP = 1e5;
  const NOTES = { opened: [0.25, "faint"], resent: [0.55, "info"], refused: [1, "fail"], reset: [1, "fail"], stalled: [1, "invalid"] };
  const WORDS = { opened: "opened", resent: "sent again", refused: "refused", reset: "reset", stalled: "sent again after 1 s or more" };
  function drawConnections(y) {
    label("connections", y + STRIP / 2);
    for (const what of Object.keys(NOTES)) {
      const [part, colour] = NOTES[what];
      context.fillStyle = colours[colour];
      for (const [time, , , kind] of data.connections) {
        const [x1, x2] = [Math.max(GUTTER, x(time)), Math.min(width, Math.max(x(time) + 1.5, x(time + NOTE_STEP) - 0.5))];
        if (kind === what && x2 > x1) context.fillRect(x1, y + STRIP - 2 - part * (STRIP - 4), x2 - x1, part * (STRIP - 4));
      }
    }
  }

  function notesAt(px, py) {
    if (!data.connections || px < GUTTER || py < connectionsTop || py >= connectionsTop + STRIP) return [];
    const slack = 2 * (to - from) / (width - GUTTER), time = at(px);
    return data.connections.filter(([begin]) => begin - slack <= time && time <= begin + NOTE_STEP + slack).slice(0, 12);
  }

  function drawFlag() {
    const px = x(start[data.culprit]);
    if (px < GUTTER || px > width) return;
    context.strokeStyle = colours.invalid;
    context.setLineDash([3, 3]);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(px, 4);
    context.lineTo(px, height);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colours.invalid;
    context.beginPath();
    context.moveTo(px, 2);
    context.lineTo(px + 9, 6);
    context.lineTo(px, 10);
    context.fill();
  }

  // The whole run, with the same width and the same gutter as the lanes below.
  const overviewX = (time) => GUTTER + time / total * (width - GUTTER);
  let bars = null;
  function drawOverview() {
    const h = overview.clientHeight, w = width - GUTTER;
    const columns = Math.max(1, Math.floor(w / 3));
    if (!bars || bars.columns !== columns) {
      bars = { columns, counts: TYPES.map(() => new Uint32Array(columns)), most: 1 };
      for (let i = 0; i < count; i++) bars.counts[data.t[i]][Math.min(columns - 1, Math.floor(start[i] / total * columns))]++;
      for (let c = 0; c < columns; c++) bars.most = Math.max(bars.most, bars.counts.reduce((sum, counts) => sum + counts[c], 0));
    }
    small.clearRect(0, 0, width, h);
    small.fillStyle = colours.faint;
    small.textBaseline = "middle";
    small.font = "10.5px system-ui, sans-serif";
    small.fillText("overview", 4, h / 2);
    small.fillStyle = colours.soft;
    small.fillRect(GUTTER, 0, w, h);
    for (const fault of data.faults) {
      small.globalAlpha = fault.effective ? 0.28 : 0.1;
      small.fillStyle = faultColour(fault.kind);
      small.fillRect(overviewX(fault.start), 0, Math.max(1, overviewX(fault.end) - overviewX(fault.start)), h);
    }
    small.globalAlpha = 1;
    for (let c = 0; c < columns; c++) {
      let y = h;
      TYPES.forEach((type, t) => {
        const part = bars.counts[t][c] / bars.most * (h - 8);
        small.fillStyle = colours[type];
        small.fillRect(GUTTER + c * w / columns, y - part, w / columns - 0.6, part);
        y -= part;
      });
    }
    small.fillStyle = colours.invalid;
    for (const i of marked) small.fillRect(overviewX(start[i]) - 1, 0, 2, h);
    small.strokeStyle = colours.ink;
    small.lineWidth = 1.5;
    const x1 = overviewX(from), x2 = overviewX(to);
    if (to - from < total) {
      small.fillStyle = colours.card;
      small.globalAlpha = 0.55;
      small.fillRect(GUTTER, 0, x1 - GUTTER, h);
      small.fillRect(x2, 0, width - x2, h);
      small.globalAlpha = 1;
      small.strokeRect(x1, 0.75, Math.max(3, x2 - x1), h - 1.5);
    }
  }

  function niceStep(raw) {
    const power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
  }
  function seconds(us, step) {
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / 1e6))));
    return `${(us / 1e6).toFixed(digits)} s`;
  }
  const isRead = (i) => /^(read|r|get)$/.test(data.functions[data.f[i]]);
  function shown(value) {
    return value === null ? "nil" : typeof value === "object" ? JSON.stringify(value) : String(value);
  }
  function described(i) {
    const f = data.functions[data.f[i]], v = data.v[i], a = data.a[i];
    if (a !== null) return `${f} ${shown(a)} → ${shown(v)}`;
    if (f === "cas" && Array.isArray(v)) return `cas ${shown(v[0])} → ${shown(v[1])}`;
    if (isRead(i)) return data.t[i] === 0 ? `${f} → ${shown(v)}` : f;
    return v === null ? f : `${f} ${shown(v)}`;
  }

  function hit(px, py) {
    const y = py - top + scroller.scrollTop;
    if (py < top) return -1;
    const lane = rows.findIndex((row) => row >= 0 && y >= row && y < row + laneHeight);
    if (lane < 0) return -1;
    const ops = laneOps[lane];
    const slack = 3 * (to - from) / (width - GUTTER);
    let best = -1, least = Infinity;
    for (let n = Math.max(0, firstVisible(ops) - 1); n < ops.length; n++) {
      const i = ops[n];
      if (start[i] > to) break;
      const time = at(px);
      const distance = Math.max(start[i] - time, time - end[i], 0);
      if (distance < least && distance <= slack) { best = i; least = distance; }
    }
    return best;
  }

  function line(text, tag = "span") {
    const element = document.createElement(tag);
    element.textContent = text;
    if (tag === "span") element.className = "quiet";
    tip.append(element);
  }

  function placeTip(clientX, clientY) {
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${clientY + 18 + box.height > innerHeight ? clientY - box.height - 12 : clientY + 18}px`;
  }

  function showLines(lines, clientX, clientY) {
    tip.replaceChildren();
    for (const [time, node, text] of lines) {
      line(`${data.nodes[node]}'s log, ${(time / 1e6).toFixed(3)} s`, "b");
      line(text);
    }
    placeTip(clientX, clientY);
  }

  function showNotes(notes, clientX, clientY) {
    tip.replaceChildren();
    line(`connections, ${(notes[0][0] / 1e6).toFixed(1)} s`, "b");
    for (const [, source, target, what, number] of notes) line(`${data.nodes[source]} → ${data.nodes[target]}: ${number} ${WORDS[what]}`);
    placeTip(clientX, clientY);
  }

  function showTip(i, clientX, clientY) {
    tip.replaceChildren();
    line(described(i), "b");
    const key = data.keys[data.k[i]], error = data.errors[data.e[i]];
    const node = data.lanes[data.l[i]];
    line(`${TYPES[data.t[i]]}${error ? `: ${error}` : ""}`);
    const reached = node === null ? "" : `, ${data.c[i] ? "answered by" : "sent to"} ${data.nodes[node]}`;
    line(`process ${data.p[i]}${reached}${key === null ? "" : `, key ${key}`}`);
    line(`${(start[i] / 1e6).toFixed(6)} s to ${data.d[i] < 0 ? "the end, without an answer" : `${(end[i] / 1e6).toFixed(6)} s (${(data.d[i] / 1000).toFixed(2)} ms)`}`);
    if (data.w[i] > 1000) line(`had waited ${(data.w[i] / 1000).toFixed(1)} ms to be sent`);
    if (marked.has(i)) line("part of the counterexample");
    placeTip(clientX, clientY);
  }

  // A page scroll that passes over the timeline continues as a scroll. A wheel turn that begins here zooms.
  let pageScrolled = -1e9, wheelled = -1e9;
  addEventListener("scroll", () => { pageScrolled = performance.now(); }, { passive: true });
  canvas.addEventListener("wheel", (event) => {
    const now = performance.now();
    const deliberate = event.ctrlKey || event.metaKey || now - wheelled < 300 || now - pageScrolled > 250;
    if (!deliberate) return;
    event.preventDefault();
    wheelled = now;
    const unit = event.deltaMode === 1 ? 30 : 1;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      const shift = (event.deltaX || event.deltaY) * unit / (width - GUTTER) * (to - from);
      move(from + shift, to + shift);
    } else zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * unit)) * 0.0035), event.offsetX);
  }, { passive: false });

  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
    canvas.classList.add("dragging");
    scroller.focus({ preventScroll: true });
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      const now = hit(event.offsetX, event.offsetY);
      if (now !== hovered) { hovered = now; queue(); }
      const lines = hovered < 0 ? loggedAt(event.offsetX, event.offsetY) : [];
      const notes = hovered < 0 ? notesAt(event.offsetX, event.offsetY) : [];
      if (hovered >= 0) showTip(hovered, event.clientX, event.clientY);
      else if (lines.length) showLines(lines, event.clientX, event.clientY);
      else if (notes.length) showNotes(notes, event.clientX, event.clientY);
      else tip.hidden = true;
      return;
    }
    tip.hidden = true;
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const was = Math.abs(before[0] - other[0]), is = Math.abs(event.offsetX - other[0]);
      if (was > 10 && is > 10) zoom(was / is, (event.offsetX + other[0]) / 2);
    } else {
      const shift = (before[0] - event.offsetX) / (width - GUTTER) * (to - from);
      move(from + shift, to + shift);
      scroller.scrollTop += before[1] - event.offsetY;
    }
    pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
  });
  const release = (event) => { pointers.delete(event.pointerId); if (!pointers.size) canvas.classList.remove("dragging"); };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; if (hovered >= 0) { hovered = -1; queue(); } });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, event.offsetX));
  scroller.addEventListener("scroll", queue, { passive: true });

  scroller.addEventListener("keydown", (event) => {
    const span = to - from;
    const actions = {
      ArrowLeft: () => move(from - span / 5, to - span / 5), ArrowRight: () => move(from + span / 5, to + span / 5),
      ArrowUp: () => { scroller.scrollTop -= 3 * laneHeight; }, ArrowDown: () => { scroller.scrollTop += 3 * laneHeight; },
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": () => move(0, total), Home: () => move(0, span),
      End: () => move(total - span, total), v: showViolation,
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });

  function centre(event) {
    const middle = (event.offsetX - GUTTER) / (width - GUTTER) * total, half = (to - from) / 2;
    move(middle - half, middle + half);
  }
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); centre(event); });
  overview.addEventListener("pointermove", (event) => { if (overview.hasPointerCapture(event.pointerId)) centre(event); });

  // The first click shows the whole counterexample. The next ones zoom in on the culprit and the last operation before it.
  let close = false;
  function showViolation() {
    if (!marked.size) return;
    let places = [...marked];
    const culprit = data.culprit ?? places[places.length - 1];
    const before = places.filter((i) => end[i] <= start[culprit]).sort((a, b) => end[b] - end[a]);
    const key = data.k[culprit];
    chosen = places.every((i) => data.k[i] === key) ? key : null;
    keySelect.value = chosen === null ? "" : String(chosen);
    if (close && before.length) places = [culprit, before[0]];
    close = !close;
    const first = Math.min(...places.map((i) => start[i])), last = Math.max(...places.map((i) => end[i]));
    const room = Math.max((last - first) * 0.35, 1000);
    move(first - room, last + room);
    layOut();
    scroller.scrollTop = rows[data.l[culprit]] - (height - top) / 2;
  }

  const counts = new Map();
  data.k.forEach((key) => counts.set(key, (counts.get(key) || 0) + 1));
  [...counts].sort((a, b) => b[1] - a[1]).slice(0, 500).forEach(([key, number]) => {
    const option = document.createElement("option");
    option.value = String(key);
    option.textContent = `${data.keys[key] === null ? "(none)" : data.keys[key]} · ${number}`;
    keySelect.append(option);
  });
  keySelect.addEventListener("change", () => { chosen = keySelect.value === "" ? null : Number(keySelect.value); queue(); });
  data.functions.forEach((name, place) => {
    const option = document.createElement("option");
    option.value = String(place);
    option.textContent = name;
    functionSelect.append(option);
  });
  functionSelect.addEventListener("change", () => { wantedFunction = functionSelect.value === "" ? null : Number(functionSelect.value); queue(); });
  valueInput.addEventListener("input", () => { wantedValue = valueInput.value.trim(); queue(); });
  const listed = document.getElementById("subjects");
  for (const label of subjects.keys()) {
    const option = document.createElement("option");
    option.value = label;
    listed.append(option);
  }
  const press = (id, action) => document.getElementById(id)?.addEventListener("click", action);
  press("in", () => zoom(0.5));
  press("out", () => zoom(2));
  press("fit", () => move(0, total));
  press("go", showViolation);

  addEventListener("resize", resize);
  addEventListener("themechange", resize);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resize);
  matchMedia("print").addEventListener("change", resize);
  resize();
})();
