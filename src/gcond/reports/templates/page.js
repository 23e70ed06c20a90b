/* The interactive view of condensed graphs. Text of data sets only ever becomes text (textContent, fillText). */
(() => {
  "use strict";

  // Okabe and Ito's colours, which people with any colour vision tell apart; further classes take other shapes.
  // The figures use the same order.
  const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442"];
  const SHAPES = ["circle", "square", "triangle", "diamond", "fallen", "cross", "turned", "pentagon"];
  const STRONGEST = 5;
  const GRID = 1000;
  const LEVELS = 8;
  const number = (value) => value.toLocaleString("en-GB");
  const weightText = (value) => (value >= 0.9995 ? value.toFixed(2) : value.toPrecision(2));
  const percent = (share) => (share >= 0.0005 || share === 0 ? `${(100 * share).toFixed(1)} %` : `${(100 * share).toPrecision(1)} %`);
  const many = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  const look = (label) => ({
    colour: COLOURS[label % COLOURS.length],
    shape: SHAPES[Math.floor(label / COLOURS.length) % SHAPES.length],
  });

  /* The outline of a shape around (x, y), as corners; none for a circle. */
  const corners = (shape, x, y, r) => {
    if (shape === "square") return [[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]];
    if (shape === "triangle") return [[x, y - 1.2 * r], [x + 1.15 * r, y + 0.85 * r], [x - 1.15 * r, y + 0.85 * r]];
    if (shape === "fallen") return [[x, y + 1.2 * r], [x + 1.15 * r, y - 0.85 * r], [x - 1.15 * r, y - 0.85 * r]];
    if (shape === "diamond") return [[x, y - 1.3 * r], [x + 1.3 * r, y], [x, y + 1.3 * r], [x - 1.3 * r, y]];
    if (shape === "pentagon") {
      return [0, 1, 2, 3, 4].map((k) => 0.4 * Math.PI * k).map((turn) => [x + 1.2 * r * Math.sin(turn), y - 1.2 * r * Math.cos(turn)]);
    }
    if (shape === "cross" || shape === "turned") {
      const a = 0.45 * r, b = 1.2 * r, c = Math.SQRT1_2;
      return [[-a, -b], [a, -b], [a, -a], [b, -a], [b, a], [a, a], [a, b], [-a, b], [-a, a], [-b, a], [-b, -a], [-a, -a]]
        .map(([dx, dy]) => (shape === "cross" ? [x + dx, y + dy] : [x + c * (dx - dy), y + c * (dx + dy)]));
    }
    return null;
  };

  const start = (root) => {
    const drawings = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    const find = (selector) => root.querySelector(selector);
    const canvas = find("canvas");
    const pen = canvas.getContext("2d");
    const slider = find("[data-slider]");
    const which = find("[data-which]");
    const details = find("[data-table]");
    find(".viewer-grid").hidden = false;

    let graph; // the drawing that is shown
    let neighbours; // of each node [[other, weight, place in the list of edges], …], strongest first
    let places; // of each node [x, y] on the grid
    let stop = 0; // place of the slider
    let chosen = -1; // by keyboard or tap
    let pointed = -1; // by the mouse
    let picked = -1; // class of the legend
    let size = { width: 0, height: 0 };
    let fit = { x: 1, y: 1 };
    let zoom = 1;
    let shift = { x: 0, y: 0 };
    let ink = {};

    const pairsLeft = () => Math.min(graph.stops[stop][1], graph.edges.length / 3);
    const around = (node) => {
      const limit = pairsLeft();
      const list = neighbours[node];
      let count = 0;
      while (count < list.length && list[count][2] < limit) count += 1;
      return list.slice(0, count);
    };
    const current = () => (pointed >= 0 ? pointed : chosen);
    const onScreen = (node) => [
      size.width / 2 + shift.x + (places[node][0] - GRID / 2) * fit.x * zoom,
      size.height / 2 + shift.y + (places[node][1] - GRID / 2) * fit.y * zoom,
    ];
    const radius = () => Math.max(3, Math.min(7.5, 60 / Math.sqrt(graph.nodes))) * Math.min(2, Math.sqrt(zoom));

    /* ---- what is shown ---- */
    const show = (index) => {
      graph = drawings[index];
      places = graph.places.map((place) => place.slice());
      neighbours = Array.from({ length: graph.nodes }, () => []);
      for (let e = 0; e < graph.edges.length; e += 3) {
        const [i, j, weight] = [graph.edges[e], graph.edges[e + 1], graph.edges[e + 2]];
        neighbours[i].push([j, weight, e / 3]);
        neighbours[j].push([i, weight, e / 3]);
      }
      [chosen, pointed, picked, stop] = [-1, -1, -1, 0];
      slider.max = graph.stops.length - 1;
      slider.value = 0;
      slider.disabled = graph.stops.length < 2;
      canvas.setAttribute("aria-label", `${graph.label}: ${many(graph.nodes, "node")}, ${many(graph.stops[0][2], "edge")}`);
      fillLegend();
      measure();
      home();
      count();
      tell();
    };

    /* What a node's number counts: joined pairs, which are edges unless they have directions, as far as they are drawn. */
    const isCut = () => graph.pairs * 3 > graph.edges.length;
    const counted = () => ({ what: graph.directed ? "neighbour" : "edge", drawn: isCut() ? " drawn" : "" });

    const remark = () => {
      if (graph.pairs === 0) return "This graph has no edges: models train on its nodes alone.";
      if (graph.stops.length < 2) return "All edges weigh the same.";
      if (isCut()) {
        const what = graph.directed ? "joined pairs" : "edges";
        return `Drawn are the ${number(graph.edges.length / 3)} heaviest of ${number(graph.pairs)} ${what}; the counts are of all.`;
      }
      return "";
    };

    const count = () => {
      const [delta, , edges, density, isolated, same] = graph.stops[stop];
      const text = { edges: number(edges), density: percent(density), isolated: number(isolated), same: same === null ? "–" : percent(same) };
      for (const [name, value] of Object.entries(text)) find(`[data-count="${name}"]`).textContent = value;
      find("[data-delta]").textContent = String(delta);
      find("[data-remark]").textContent = remark();
      slider.setAttribute("aria-valuetext", `δ ${delta}: ${many(edges, "edge")}, density ${text.density}, `
        + `${many(isolated, "node")} without edges, ${same === null ? "no edge" : text.same} within a class`);
      if (details.open) fillTable();
      draw();
    };

    const describe = (node) => {
      const joined = around(node);
      const { what, drawn } = counted();
      const origin = graph.origin ? `, node ${number(graph.origin[node])} of the source` : "";
      return { title: `Node ${node}${origin}`, name: graph.names[graph.labels[node]], degree: `${many(joined.length, what)}${drawn}`, joined };
    };

    const tell = () => {
      const panel = find("[data-node]");
      const node = current();
      panel.replaceChildren();
      canvas.dataset.chosen = node;
      if (node < 0) {
        delete canvas.dataset.at;
        panel.append(make("p", "Point at a node to see its class and its strongest neighbours.", "empty"));
        return;
      }
      canvas.dataset.at = onScreen(node).map(Math.round).join(",");
      const said = describe(node);
      const about = make("p");
      about.append(make("bdi", said.name), `${graph.soft ? " (likeliest)" : ""}, ${said.degree}`);
      panel.append(make("p", said.title, "title"), about);
      if (said.joined.length === 0) return;
      panel.append(make("p", "Strongest neighbours:"));
      const list = make("ol");
      for (const [other, weight] of said.joined.slice(0, STRONGEST)) {
        const item = make("li");
        const who = make("span", `${other}, `);
        who.append(make("bdi", graph.names[graph.labels[other]]));
        item.append(swatch(graph.labels[other]), who, make("b", weightText(weight)));
        list.append(item);
      }
      panel.append(list);
    };

    const fillTable = () => {
      const { what, drawn } = counted();
      find("[data-edges]").textContent = `${what}s${drawn}`;
      const rows = graph.labels.map((label, node) => {
        const row = make("tr");
        const head = make("th", String(node));
        head.scope = "row";
        const said = describe(node);
        const strongest = said.joined.slice(0, STRONGEST).map(([other, weight]) => `${other} (${weightText(weight)})`).join(", ");
        const name = make("td");
        name.append(make("bdi", said.name));
        row.append(head, name, make("td", number(said.joined.length)), make("td", strongest || "–"));
        return row;
      });
      details.querySelector("tbody").replaceChildren(...rows);
    };

    const swatch = (label) => {
      const space = "http://www.w3.org/2000/svg";
      const { colour, shape } = look(label);
      const svg = document.createElementNS(space, "svg");
      svg.setAttribute("viewBox", "0 0 16 16");
      svg.setAttribute("aria-hidden", "true");
      const outline = corners(shape, 8, 8, 5);
      const mark = document.createElementNS(space, outline ? "polygon" : "circle");
      if (outline) mark.setAttribute("points", outline.map((corner) => corner.join(",")).join(" "));
      else for (const [key, value] of [["cx", 8], ["cy", 8], ["r", 6]]) mark.setAttribute(key, value);
      mark.setAttribute("fill", colour);
      mark.setAttribute("stroke", "currentColor");
      mark.setAttribute("stroke-width", "0.75");
      svg.append(mark);
      const holder = make("span");
      holder.append(svg);
      return holder;
    };

    const fillLegend = () => {
      const sizes = graph.names.map(() => 0);
      for (const label of graph.labels) sizes[label] += 1;
      find("[data-legend]").replaceChildren(...graph.names.map((name, label) => {
        const item = make("li");
        const button = make("button");
        button.type = "button";
        button.setAttribute("aria-pressed", "false");
        button.append(swatch(label), make("bdi", name), make("small", number(sizes[label])));
        button.addEventListener("click", () => {
          picked = picked === label ? -1 : label;
          for (const [other, each] of find("[data-legend]").querySelectorAll("button").entries()) {
            each.setAttribute("aria-pressed", String(other === picked));
          }
          draw();
        });
        item.append(button);
        return item;
      }));
    };

    /* ---- drawing ---- */
    let waiting = false;
    const draw = () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; paint(); });
    };

    const readInk = () => {
      const style = getComputedStyle(root);
      for (const name of ["edge", "halo", "ink", "accent", "paper"]) ink[name] = style.getPropertyValue(`--${name}`).trim();
    };

    const paint = () => {
      const node = current();
      const joined = node >= 0 ? around(node) : [];
      const near = new Set(joined.map(([other]) => other).concat(node));
      const quiet = (i) => (node >= 0 ? !near.has(i) : picked >= 0 && graph.labels[i] !== picked);
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.setTransform(canvas.width / size.width, 0, 0, canvas.height / size.height, 0, 0);
      paintEdges(node, quiet);
      for (let i = 0; i < graph.nodes; i += 1) if (quiet(i)) paintNode(i, 0.2, radius());
      pen.strokeStyle = ink.accent;
      for (const [other, weight] of joined) {
        pen.globalAlpha = 0.9;
        pen.lineWidth = 1 + 2.5 * (weight / graph.edges[2]);
        pen.beginPath();
        pen.moveTo(...onScreen(node));
        pen.lineTo(...onScreen(other));
        pen.stroke();
      }
      for (let i = 0; i < graph.nodes; i += 1) if (!quiet(i)) paintNode(i, 1, radius());
      if (node >= 0) {
        paintNode(node, 1, radius() * 1.5);
        paintName(node);
      }
    };

    /* Edges in a few steps of weight, a path each: thousands of single strokes would be slow. */
    const paintEdges = (node, quiet) => {
      const limit = pairsLeft();
      const heaviest = graph.edges[2];
      const crowd = Math.min(1, Math.sqrt(600 / Math.max(limit, 1)));
      pen.strokeStyle = ink.edge;
      let e = 0;
      for (let level = LEVELS; level > 0; level -= 1) {
        const least = level === 1 ? -1 : ((level - 1) / LEVELS) * heaviest;
        for (const dim of [true, false]) {
          pen.beginPath();
          let k = e;
          for (; k < limit && graph.edges[3 * k + 2] > least; k += 1) {
            const i = graph.edges[3 * k], j = graph.edges[3 * k + 1];
            const faint = node >= 0 || quiet(i) || quiet(j);
            if (faint !== dim) continue;
            pen.moveTo(...onScreen(i));
            pen.lineTo(...onScreen(j));
          }
          pen.globalAlpha = (dim ? 0.25 : 1) * (0.18 + 0.72 * (level / LEVELS)) * Math.max(0.3, crowd);
          pen.lineWidth = (0.7 + 2.3 * (level / LEVELS)) * Math.max(0.5, crowd);
          pen.stroke();
          if (!dim) e = k;
        }
      }
    };

    const paintNode = (i, alpha, r) => {
      const { colour, shape } = look(graph.labels[i]);
      const [x, y] = onScreen(i);
      const outline = corners(shape, x, y, r * 0.9);
      pen.beginPath();
      if (outline) { outline.forEach((corner) => pen.lineTo(...corner)); pen.closePath(); } else pen.arc(x, y, r, 0, 2 * Math.PI);
      pen.globalAlpha = 1;
      pen.fillStyle = ink.paper; // nothing shines through a faint node
      pen.fill();
      pen.globalAlpha = alpha;
      pen.fillStyle = colour;
      pen.fill();
      pen.lineWidth = 1;
      pen.strokeStyle = i === current() ? ink.ink : ink.halo;
      if (i === current()) pen.lineWidth = 2;
      pen.stroke();
    };

    const paintName = (node) => {
      const [x, y] = onScreen(node);
      const name = graph.names[graph.labels[node]];
      const text = `${node} · ${name.length > 40 ? `${name.slice(0, 39)}…` : name}`;
      pen.globalAlpha = 1;
      pen.font = `600 13px ${getComputedStyle(root).fontFamily}`;
      const width = pen.measureText(text).width;
      const left = Math.max(8, Math.min(size.width - width - 8, x + radius() * 1.5 + 6));
      const base = y > 34 ? y - radius() - 8 : y + radius() + 20;
      pen.lineWidth = 4;
      pen.lineJoin = "round";
      pen.strokeStyle = ink.halo;
      pen.strokeText(text, left, base);
      pen.fillStyle = ink.ink;
      pen.fillText(text, left, base);
    };

    /* ---- moving about ---- */
    const measure = () => {
      const box = canvas.getBoundingClientRect();
      if (box.width === 0) return;
      const fine = Math.max(2, window.devicePixelRatio || 1); // at least 2, or print is coarse
      size = { width: box.width, height: box.height };
      canvas.width = Math.round(box.width * fine);
      canvas.height = Math.round(box.height * fine);
      const margin = 24;
      const reach = (axis) => Math.max(1, 2 * Math.max(...graph.places.map((place) => Math.abs(place[axis] - GRID / 2))));
      const across = (size.width - 2 * margin) / reach(0);
      const down = (size.height - 2 * margin) / reach(1);
      const both = Math.min(across, down);
      fit = { x: Math.min(across, 1.4 * both), y: Math.min(down, 1.4 * both) };
      readInk();
    };
    const home = () => { zoom = 1; shift = { x: 0, y: 0 }; draw(); };
    const zoomAt = (factor, x = size.width / 2, y = size.height / 2) => {
      const next = Math.max(0.5, Math.min(20, zoom * factor));
      const ratio = next / zoom;
      shift.x = (x - size.width / 2) * (1 - ratio) + shift.x * ratio;
      shift.y = (y - size.height / 2) * (1 - ratio) + shift.y * ratio;
      zoom = next;
      canvas.dataset.scale = zoom.toFixed(2);
      draw();
    };
    const keepInSight = (node) => {
      const [x, y] = onScreen(node);
      const margin = 40;
      shift.x += Math.max(0, margin - x) - Math.max(0, x - (size.width - margin));
      shift.y += Math.max(0, margin - y) - Math.max(0, y - (size.height - margin));
    };
    const choose = (node) => {
      chosen = node;
      pointed = -1;
      if (node >= 0) keepInSight(node);
      tell();
      draw();
    };
    const nodeAt = (x, y, reach) => {
      let best = -1;
      let least = (radius() + reach) ** 2;
      for (let i = 0; i < graph.nodes; i += 1) {
        const [px, py] = onScreen(i);
        const apart = (px - x) ** 2 + (py - y) ** 2;
        if (apart <= least) { best = i; least = apart; }
      }
      return best;
    };

    /* The nearest node in a direction; what lies off to the side counts as further away. */
    const towards = (from, dx, dy) => {
      const [x, y] = onScreen(from);
      let best = from;
      let least = Infinity;
      for (let i = 0; i < graph.nodes; i += 1) {
        const [px, py] = onScreen(i);
        const ahead = (px - x) * dx + (py - y) * dy;
        const aside = Math.abs((px - x) * dy - (py - y) * dx);
        if (i !== from && ahead > 0 && aside <= 2 * ahead && ahead + 2 * aside < least) { best = i; least = ahead + 2 * aside; }
      }
      return best;
    };
    const strongest = () => {
      const strength = graph.labels.map((_, i) => around(i).reduce((sum, [, weight]) => sum + weight, 0));
      return strength.indexOf(Math.max(...strength));
    };

    const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const from = current();
      if (event.key in ARROWS) choose(from < 0 ? strongest() : towards(from, ...ARROWS[event.key]));
      else if (event.key === "Home") choose(strongest());
      else if (event.key === "Enter" || event.key === " ") {
        const next = from < 0 ? strongest() : (around(from)[0] || [from])[0];
        choose(next);
      } else if (event.key === "+" || event.key === "=") zoomAt(1.3);
      else if (event.key === "-" || event.key === "_") zoomAt(1 / 1.3);
      else if (event.key === "0") home();
      else if (event.key === "Escape" && from >= 0) choose(-1);
      else return;
      event.preventDefault();
    });

    const steps = { in: () => zoomAt(1.4), out: () => zoomAt(1 / 1.4), fit: home };
    for (const button of root.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", steps[button.dataset.zoom]);
    }

    const where = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    // Without this the page would stop scrolling wherever the picture happens to be under the mouse.
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return;
      event.preventDefault();
      zoomAt(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), ...where(event));
    }, { passive: false });

    const fingers = new Map();
    let held = null; // { node, moved, x, y } while one pointer is down
    canvas.addEventListener("touchstart", (event) => {
      const box = canvas.getBoundingClientRect();
      const touch = event.touches[0];
      const onNode = nodeAt(touch.clientX - box.left, touch.clientY - box.top, 14) >= 0;
      if (onNode || event.touches.length > 1) event.preventDefault(); // else the page may scroll
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = where(event);
      canvas.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [x, y]);
      held = fingers.size === 1 ? { node: nodeAt(x, y, event.pointerType === "touch" ? 14 : 4), moved: false, x, y } : null;
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = where(event);
      if (fingers.size === 2 && fingers.has(event.pointerId)) {
        const [before, other] = [fingers.get(event.pointerId), [...fingers].find(([id]) => id !== event.pointerId)[1]];
        const spread = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1;
        zoomAt(spread([x, y]) / spread(before), (x + other[0]) / 2, (y + other[1]) / 2);
        fingers.set(event.pointerId, [x, y]);
        return;
      }
      if (held) {
        const [dx, dy] = [x - held.x, y - held.y];
        if (!held.moved && Math.hypot(dx, dy) < 4) return;
        held.moved = true;
        canvas.classList.add("dragging");
        if (held.node >= 0) {
          chosen = held.node;
          places[held.node][0] += dx / (fit.x * zoom);
          places[held.node][1] += dy / (fit.y * zoom);
        } else {
          shift.x += dx;
          shift.y += dy;
        }
        [held.x, held.y] = [x, y];
        tell();
        draw();
        return;
      }
      const node = event.pointerType === "touch" ? -1 : nodeAt(x, y, 4);
      canvas.classList.toggle("on-node", node >= 0);
      if (node !== pointed) { pointed = node; tell(); draw(); }
    });
    const release = (event) => {
      fingers.delete(event.pointerId);
      canvas.classList.remove("dragging");
      if (held && !held.moved && event.type === "pointerup") choose(held.node);
      held = null;
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => { if (pointed >= 0) { pointed = -1; tell(); draw(); } });

    slider.addEventListener("input", () => { stop = Number(slider.value); count(); tell(); });
    if (which) which.addEventListener("change", () => show(Number(which.value)));
    details.addEventListener("toggle", () => { if (details.open) fillTable(); });

    const again = () => { measure(); paint(); };
    new ResizeObserver(again).observe(canvas);
    for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", again);
    window.addEventListener("beforeprint", again);
    window.addEventListener("afterprint", again);
    show(0);
    if (which) which.value = "0"; // browsers put back what was chosen before a reload
  };

  for (const root of document.querySelectorAll("[data-viewer]")) start(root);

  // On paper nothing can be opened: settings are printed, and closed again afterwards.
  const closed = () => [...document.querySelectorAll("details:not([open]):not([data-table])")];
  let opened = [];
  window.addEventListener("beforeprint", () => { opened = closed(); for (const each of opened) each.open = true; });
  window.addEventListener("afterprint", () => { for (const each of opened) each.open = false; });
})();
