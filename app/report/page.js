(function () {
  'use strict';
  const root = document.documentElement;
  root.classList.add('scripted');
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));
  const said = document.getElementById('said');
  const say = (text) => { said.textContent = text; };

  // ---- Theme: as the system has it, until the button is pressed.
  const theme = document.getElementById('theme');
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : system.matches);
  const showTheme = () => theme.setAttribute('aria-pressed', String(isDark()));
  theme.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    showTheme();
  });
  system.addEventListener('change', showTheme);
  showTheme();

  // ---- Legends: a button hides and shows its series in all plots that share the legend.
  for (const button of all('.legend button')) {
    const shared = button.closest('.plots.shared') || button.closest('figure');
    button.addEventListener('click', () => {
      const on = button.getAttribute('aria-pressed') !== 'true';
      button.setAttribute('aria-pressed', String(on));
      for (const group of all('g[data-series]', shared)) {
        if (group.dataset.series === button.dataset.series) group.classList.toggle('off', !on);
      }
    });
  }

  // ---- Tables: sorted by a column; rows without a value stand last.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim() : cell.dataset.v;
  };
  function sort(head) {
    const table = head.closest('table'), body = table.tBodies[0], column = head.cellIndex;
    const wasAscending = head.getAttribute('aria-sort') === 'ascending';
    const isFirst = head.getAttribute('aria-sort') === 'none';
    const direction = isFirst || !wasAscending ? 1 : -1;
    const rows = Array.from(body.rows).map((row, i) => {
      const text = valueOf(row, column), number = Number(text.replace(/,/g, ''));
      return { row, i, text, number, isEmpty: text === '' || text === '\u2013' };
    });
    const isNumeric = rows.every((r) => r.isEmpty || !Number.isNaN(r.number));
    const words = new Intl.Collator('en', { numeric: true });
    rows.sort((a, b) => {
      if (a.isEmpty !== b.isEmpty) return a.isEmpty ? 1 : -1;
      const order = a.isEmpty ? 0 : isNumeric ? a.number - b.number : words.compare(a.text, b.text);
      return direction * order || a.i - b.i;
    });
    body.append(...rows.map((r) => r.row));
    for (const other of all('th[aria-sort]', table)) other.setAttribute('aria-sort', 'none');
    head.setAttribute('aria-sort', direction > 0 ? 'ascending' : 'descending');
    say('Sorted by ' + head.dataset.text + ', ' + head.getAttribute('aria-sort'));
  }
  for (const button of all('.sort')) button.addEventListener('click', () => sort(button.closest('th')));

  // ---- Filters: all words must be in the row, and its kind must be the chosen one.
  for (const filters of all('.filters')) {
    const rows = Array.from(document.getElementById(filters.dataset.table).tBodies[0].rows);
    const input = filters.querySelector('input'), select = filters.querySelector('select');
    let texts = null;
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean), kind = select ? select.value : '';
      texts = texts || new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
      let shown = 0;
      for (const row of rows) {
        const fits = (!kind || row.dataset.kind === kind) && words.every((word) => texts.get(row).includes(word));
        row.hidden = !fits;
        shown += fits;
      }
      filters.querySelector('output').textContent = shown + ' of ' + rows.length + ' rows';
    };
    input.addEventListener('input', apply);
    if (select) select.addEventListener('change', apply);
  }

  // ---- Copying.
  function copyOld(node) { // where a page from a file may not use the clipboard
    const range = document.createRange(), selection = window.getSelection();
    range.selectNodeContents(node);
    selection.removeAllRanges();
    selection.addRange(range);
    const good = document.execCommand('copy');
    selection.removeAllRanges();
    return good;
  }
  for (const button of all('.copy')) {
    button.addEventListener('click', async () => {
      const node = document.getElementById(button.dataset.copies);
      let good = true;
      try {
        await navigator.clipboard.writeText(node.textContent);
      } catch (error) {
        good = copyOld(node);
      }
      button.textContent = good ? 'Copied' : 'Not copied';
      say(button.textContent);
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
  }

  // ---- Views.
  const data = document.getElementById('view-data');
  if (!data) return;
  const views = JSON.parse(data.textContent);
  const viewer = document.getElementById('viewer');
  const element = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const range = (low, high, step, value) => element('input', { type: 'range', min: low, max: high, step, value });
  const labelled = (text, control, ...shows) => { // what the control shows is no part of its name
    control.setAttribute('aria-label', text);
    return element('label', {}, text, control, ...shows);
  };
  const option = (value, text) => element('option', { value }, text);
  const figure = (value, digits) => (value === null ? '\u2013' : value.toFixed(digits));

  // Reads a PNG's pixels. They are exact: pictures have no alpha and no colour profile.
  function pixelsOf(uri) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => {
        const canvas = element('canvas', { width: image.width, height: image.height });
        const context = canvas.getContext('2d', { willReadFrequently: true });
        context.drawImage(image, 0, 0);
        resolve(context.getImageData(0, 0, image.width, image.height).data);
      };
      image.onerror = reject;
      image.src = uri;
    });
  }
  async function load(view) {
    const n = view.columns * view.rows, c = view.components;
    const deep = await pixelsOf(view.png), sign = 2 ** (view.bits - 1), mask = 2 ** view.bits - 1;
    const samples = new Int32Array(n * c);
    for (let k = 0; k < c; k++) {
      for (let i = 0; i < n; i++) {
        const at = 4 * (k * n + i), bits = ((deep[at] << 8) | deep[at + 1]) & mask;
        samples[i * c + k] = view.signed && bits >= sign ? bits - 2 * sign : bits;
      }
    }
    const decoded = [];
    for (const one of view.decoded) {
      const pixels = await pixelsOf(one.png), bytes = new Uint8Array(n * c);
      for (let i = 0; i < n; i++) for (let k = 0; k < c; k++) bytes[i * c + k] = pixels[4 * i + k];
      decoded.push(bytes);
    }
    return { samples, decoded };
  }

  // The controls.
  const choice = element('select', {}, ...views.map((v, i) => option(i, (i + 1) + '. ' + v.name + ', ' + v.modality)));
  const first = element('select', {}), second = element('select', {});
  const level = range(0, 1, 1, 0), width = range(1, 2, 1, 1), gain = range(1, 32, 1, 8), split = range(0, 100, 1, 100);
  const levelOut = element('output'), widthOut = element('output'), gainOut = element('output');
  const reset = element('button', { type: 'button' }, 'Reset window');
  const zoomIn = element('button', { type: 'button', 'aria-label': 'Zoom in' }, '+');
  const zoomOut = element('button', { type: 'button', 'aria-label': 'Zoom out' }, '\u2212');
  const zoomFit = element('button', { type: 'button', 'aria-label': 'Show the whole picture' }, 'Whole');
  const zoomSaid = element('output');
  const about = element('p', { class: 'small' }), burned = element('p', { class: 'warning' });
  burned.textContent = 'Text may be burned into this picture.';
  const probe = element('p', { class: 'probe' });
  const panes = ['Original', 'Decoded', 'Difference'].map((name) => {
    const canvas = element('canvas', { tabindex: '0', role: 'img', 'aria-label': name });
    const caption = element('figcaption');
    return { name, canvas, caption, picture: element('canvas'), node: element('figure', {}, caption, canvas) };
  });
  split.setAttribute('aria-label', 'Share of the picture that shows the first codec, in percent');
  const splitRow = element('div', { class: 'split' }, split);
  panes[1].node.append(splitRow);
  viewer.replaceChildren(
    element('div', { class: 'viewer-bar' }, labelled('View', choice), labelled('Codec', first),
      labelled('against', second)),
    about, burned,
    element('div', { class: 'viewer-bar' }, labelled('Level', level, levelOut),
      labelled('Width', width, widthOut), reset, labelled('Amplify', gain, gainOut),
      element('span', { role: 'group', 'aria-label': 'Zoom' }, zoomOut, ' ', zoomIn, ' ', zoomFit, ' ', zoomSaid)),
    element('div', { class: 'panes' }, ...panes.map((pane) => pane.node)), probe,
    element('p', { class: 'small' }, 'Click a picture first. Then the wheel or + and \u2212 zoom, dragging or the ' +
      'arrow keys move, 0 shows the whole. All three pictures move together.'));

  let view = views[0], loaded = null, zoom = 1, centre = [0, 0];

  // DICOM PS3.3 C.11.2.1.2.1: samples up to c - 0.5 - (w - 1) / 2 are black, those above c - 0.5 + (w - 1) / 2 white.
  const shown = (sample) => {
    const w = Number(width.value), c = Number(level.value);
    if (w <= 1) return sample <= c - 0.5 ? 0 : 255;
    return 255 * Math.min(1, Math.max(0, (sample - (c - 0.5)) / (w - 1) + 0.5));
  };
  // The 8-bit picture that codecs were given, and a sample that a value of theirs stands for.
  const narrow = (sample) =>
    Math.round(255 * Math.min(1, Math.max(0, (sample - view.low) / (view.high - view.low || 1))));
  const widen = (byte) => view.low + byte / 255 * (view.high - view.low);
  const table = (count, map) => Uint8ClampedArray.from({ length: count }, (unused, i) => map(i));

  function paint(pane, valueAt) {
    const { columns, rows, components } = view, picture = pane.picture;
    picture.width = columns;
    picture.height = rows;
    const context = picture.getContext('2d'), out = context.createImageData(columns, rows);
    for (let i = 0, o = 0; i < columns * rows; i++, o += 4) {
      for (let k = 0; k < 3; k++) out.data[o + k] = valueAt(i, components === 3 ? i * 3 + k : i);
      out.data[o + 3] = 255;
    }
    context.putImageData(out, 0, 0);
  }
  // The column at which the second codec's picture begins.
  const edge = () => (second.value === '' ? view.columns : Math.round(view.columns * split.value / 100));
  const pictureAt = (column) => loaded.decoded[column < edge() ? first.value : second.value];

  function paintAll() {
    if (!loaded) return;
    const { samples, decoded } = loaded, amplify = Number(gain.value), columns = view.columns;
    const bytes = table(256, (byte) => shown(widen(byte)));
    paint(panes[0], (i, at) => shown(samples[at]));
    if (decoded.length > 0) {
      paint(panes[1], (i, at) => bytes[pictureAt(i % columns)[at]]);
      paint(panes[2], (i, at) => Math.min(255, amplify * Math.abs(narrow(samples[at]) - pictureAt(i % columns)[at])));
    }
    draw();
  }

  function draw() {
    for (const pane of panes) {
      const canvas = pane.canvas, wide = Math.max(1, Math.round(canvas.clientWidth * (window.devicePixelRatio || 1)));
      canvas.width = wide;
      canvas.height = Math.max(1, Math.round(wide * view.rows / view.columns));
      const context = canvas.getContext('2d'), scale = zoom * wide / view.columns;
      context.imageSmoothingEnabled = false;
      context.setTransform(scale, 0, 0, scale, wide / 2 - scale * centre[0], canvas.height / 2 - scale * centre[1]);
      if (pane.picture.width > 1) context.drawImage(pane.picture, 0, 0);
      if (pane !== panes[0] && second.value !== '' && edge() > 0 && edge() < view.columns) {
        context.fillStyle = '#ffffff';
        context.fillRect(edge() - 0.5 / scale, 0, 1 / scale, view.rows);
      }
    }
    zoomSaid.textContent = zoom + ' \u00d7';
    viewer.dataset.zoom = zoom;
    viewer.dataset.centre = centre.map((v) => Math.round(v)).join(' ');
  }

  const nameOf = (one) => one.codec + (one.setting ? ', ' + one.setting : '');
  const factsOf = (one) => nameOf(one) + ': ' + one.bytes.toLocaleString('en') + ' bytes, PSNR ' + figure(one.psnr, 2) +
    ' dB, SSIM ' + figure(one.ssim, 4);
  function caption() {
    const a = view.decoded[first.value], b = second.value === '' ? null : view.decoded[second.value];
    panes[0].caption.textContent = 'Original, ' + view.bits + ' bits';
    panes[1].caption.textContent = !a ? 'No decoded picture' : !b ? factsOf(a)
      : 'Left ' + factsOf(a) + '; right ' + factsOf(b);
    panes[2].caption.textContent = 'Difference of the 8-bit pictures, ' + gain.value + ' times';
    splitRow.hidden = !b;
    levelOut.textContent = level.value;
    widthOut.textContent = width.value;
    gainOut.textContent = gain.value + ' \u00d7';
    for (const pane of panes) pane.canvas.setAttribute('aria-label', pane.name + ': ' + pane.caption.textContent);
  }

  function resetWindow() {
    const w = Math.max(2, Math.round(view.high - view.low + 1)), top = 2 ** view.bits;
    level.min = view.signed ? -top / 2 : 0;
    level.max = view.signed ? top / 2 : top;
    width.max = top;
    width.value = w;
    level.value = Math.round((view.low + view.high + 1) / 2);
  }
  function whole() {
    zoom = 1;
    centre = [view.columns / 2, view.rows / 2];
    draw();
  }
  async function choose() {
    const chosen = views[choice.value];
    view = chosen;
    loaded = null;
    const names = view.decoded.map((one, i) => option(i, nameOf(one)));
    first.replaceChildren(...names);
    second.replaceChildren(option('', 'none'), ...names.map((node) => node.cloneNode(true)));
    split.value = 50;
    const size = view.columns + ' \u00d7 ' + view.rows, of = view.ofColumns + ' \u00d7 ' + view.ofRows;
    about.textContent = size === of ? 'The whole picture, ' + size + '.'
      : 'Crop of ' + size + ' of ' + of + ', from column ' + view.x + ', row ' + view.y + '.';
    burned.hidden = !view.burned;
    probe.textContent = '';
    resetWindow();
    const pixels = await load(chosen);
    if (view !== chosen) return;
    loaded = pixels;
    caption();
    whole();
    paintAll();
    viewer.dataset.view = choice.value;
  }

  // Moves by steps of the picture's pixels; the centre stays in the picture.
  function move(x, y) {
    centre = [Math.min(view.columns, Math.max(0, centre[0] + x)), Math.min(view.rows, Math.max(0, centre[1] + y))];
    draw();
  }
  function scaleBy(factor, at) { // the point under at stays where it is
    const next = Math.min(32, Math.max(1, zoom * factor)), point = at || centre;
    centre = centre.map((v, i) => point[i] + (v - point[i]) * zoom / next);
    zoom = next;
    if (zoom === 1) whole();
    else move(0, 0);
  }
  function pointOf(canvas, event) {
    const box = canvas.getBoundingClientRect(), scale = zoom * box.width / view.columns;
    return [centre[0] + (event.clientX - box.left - box.width / 2) / scale,
      centre[1] + (event.clientY - box.top - box.height / 2) / scale];
  }
  const list = (array, at) => Array.from(array.slice(at, at + view.components)).join(', ');
  function tell(point) {
    const x = Math.floor(point[0]), y = Math.floor(point[1]);
    if (!loaded || x < 0 || y < 0 || x >= view.columns || y >= view.rows) return;
    const i = y * view.columns + x, at = i * view.components;
    const original = Array.from(loaded.samples.slice(at, at + view.components));
    let text = 'Column ' + (view.x + x) + ', row ' + (view.y + y) + ': original ' + original.join(', ') + ' (8-bit ' +
      original.map(narrow).join(', ') + ')';
    view.decoded.forEach((one, d) => { text += '; ' + nameOf(one) + ' ' + list(loaded.decoded[d], at); });
    probe.textContent = text;
  }
  for (const { canvas } of panes) {
    let from = null;
    canvas.addEventListener('pointerdown', (event) => {
      from = pointOf(canvas, event);
      canvas.focus();
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', (event) => {
      const point = pointOf(canvas, event);
      if (from) move(from[0] - point[0], from[1] - point[1]);
      tell(point);
    });
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => { from = null; });
    canvas.addEventListener('wheel', (event) => {
      if (document.activeElement !== canvas) return; // the page scrolls
      event.preventDefault();
      scaleBy(event.deltaY < 0 ? 2 : 0.5, pointOf(canvas, event));
    }, { passive: false });
    canvas.addEventListener('keydown', (event) => {
      const step = Math.max(1, Math.round(view.columns / zoom / 8));
      const keys = { '+': () => scaleBy(2), '=': () => scaleBy(2), '-': () => scaleBy(0.5), 0: whole,
        ArrowLeft: () => move(-step, 0), ArrowRight: () => move(step, 0), ArrowUp: () => move(0, -step),
        ArrowDown: () => move(0, step) };
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
  zoomIn.addEventListener('click', () => scaleBy(2));
  zoomOut.addEventListener('click', () => scaleBy(0.5));
  zoomFit.addEventListener('click', whole);
  let waits = false;
  const repaint = () => { // once a frame, however fast a slider moves
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      caption();
      paintAll();
    });
  };
  for (const control of [level, width, gain, split, first, second]) control.addEventListener('input', repaint);
  reset.addEventListener('click', () => {
    resetWindow();
    repaint();
  });
  choice.addEventListener('input', choose);
  window.addEventListener('resize', () => { if (loaded) draw(); });
  choose();
})();
