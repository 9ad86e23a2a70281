// Measures a page; `layout.py` has the rules. Its value is a list of sentences.
((LEAST) => {
    const found = new Set();
    const say = (what, element, more = "") => {
        const text = (element.textContent || "").trim().replace(/\s+/g, " ").slice(0, 50);
        const name = element.tagName.toLowerCase() + (element.id ? "#" + element.id : "")
            + (element.classList.length ? "." + [...element.classList].join(".") : "");
        found.add(`${what}: <${name}> ${JSON.stringify(text)} ${more}`.trim());
    };
    const unclipped = (element) => {
        for (let e = element; e; e = e.parentElement) if (getComputedStyle(e).clipPath.startsWith("inset(50%")) return false;
        return true;
    };
    const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && unclipped(element);
    for (const details of document.querySelectorAll("details")) details.open = true;
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) say("the page scrolls sideways", document.body, `${root.scrollWidth} px`);

    // What scrolls or cuts.
    for (const element of document.querySelectorAll("main *")) {
        if (!shown(element) || element.closest(".sr, svg, pre") || element.matches("input, select, textarea")) continue;
        const style = getComputedStyle(element);
        const clips = style.overflowX !== "visible", deep = style.overflowY !== "visible";
        const pans = element.hasAttribute("data-pans");
        if (clips && !pans && element.scrollWidth > element.clientWidth + 1) {
            say("is cut off", element, `${element.scrollWidth} of ${element.clientWidth} px`);
        }
        if (deep && style.overflowY === "hidden" && style.webkitLineClamp === "none" && element.scrollHeight > element.clientHeight + 1) {
            say("is cut off below", element);
        }
        if (pans && element.scrollWidth > element.clientWidth + 1) {
            const box = element.getBoundingClientRect();
            const names = [...element.querySelectorAll("[data-node]")].map((name) => name.getBoundingClientRect());
            const seen = (name) => name.left >= box.left - 1 && name.right <= box.right + 1 && name.top >= box.top - 1 && name.bottom <= box.bottom + 1;
            if (!names.some(seen)) say("opens with no node in view", element);
        }
    }

    // A table whose rows are blocks has no head; what only its head leads to is lost.
    const links = [...document.querySelectorAll("main a[href]")];
    for (const link of links) {
        if (!unclipped(link) && !links.some((other) => other.href === link.href && shown(other))) say("leads nowhere else, and is hidden", link);
    }

    // Texts: within their block, and not on each other.
    const inner = (element) => {
        for (let e = element; e; e = e.parentElement) if (!getComputedStyle(e).display.startsWith("inline") || e.matches("svg")) return e;
        return document.body;
    };
    const clipped = (rect, element) => {
        let { left, top, right, bottom } = rect;
        for (let e = element; e; e = e.parentElement) {
            if (getComputedStyle(e).overflowX === "visible") continue;
            const box = e.getBoundingClientRect();
            [left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
        }
        return { left, top, right, bottom, height: bottom - top };
    };
    const texts = [];
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode, parent = node.parentElement;
        if (!node.textContent.trim() || !shown(parent)) continue;
        if (parent.closest(".sr, script, style, noscript, title, datalist, option, pre")) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const svg = parent.closest("svg"), block = svg ?? inner(parent), box = block.getBoundingClientRect();
        const rects = svg ? [parent.closest("text").getBoundingClientRect()] : [...range.getClientRects()];
        for (const rect of rects) {
            if (rect.width < 1) continue;
            if (rect.left < box.left - 1.5 || rect.right > box.right + 1.5 || (svg && (rect.top < box.top - 2 || rect.bottom > box.bottom + 2))) {
                say("reaches out of its " + block.tagName.toLowerCase(), parent, `${Math.round(Math.max(box.left - rect.left, rect.right - box.right))} px`);
            }
            const seen = clipped(rect, parent);
            if (seen.right > seen.left && seen.height > 3) texts.push({ rect: seen, parent, svg });
        }
        const cell = parent.closest("td");
        if (cell && node.textContent.trim().length >= 60) {
            const lines = new Set(rects.map((rect) => Math.round(rect.top))).size;
            if (node.textContent.trim().replace(/\s+/g, " ").length / lines < LEAST) say("is squeezed", cell, `${lines} lines`);
        }
    }
    texts.sort((a, b) => a.rect.top - b.rect.top);
    for (let i = 0; i < texts.length; i++) {
        const a = texts[i];
        for (let j = i + 1; j < texts.length && texts[j].rect.top < a.rect.bottom - 3; j++) {
            const b = texts[j];
            if (a.parent === b.parent || a.parent.contains(b.parent) || b.parent.contains(a.parent)) continue;
            const wide = Math.min(a.rect.right, b.rect.right) - Math.max(a.rect.left, b.rect.left);
            const high = Math.min(a.rect.bottom, b.rect.bottom) - Math.max(a.rect.top, b.rect.top);
            const least = Math.min(a.rect.height, b.rect.height);
            if (wide > 2 && high > 0.4 * least) say("lies on another text", a.parent, JSON.stringify(b.parent.textContent.trim().slice(0, 40)));
        }
    }

    // Names in a picture of a counterexample stand beside its bands and bars.
    for (const svg of document.querySelectorAll("svg.example")) {
        if (!shown(svg)) continue;
        const solid = [...svg.querySelectorAll("rect.fault, g > rect:not(.tail)")].map((rect) => rect.getBoundingClientRect());
        for (const name of svg.querySelectorAll(".who, .took, .fault-name")) {
            const text = name.getBoundingClientRect();
            const on = (box) => Math.min(text.right, box.right) - Math.max(text.left, box.left) > 2 && Math.min(text.bottom, box.bottom) - Math.max(text.top, box.top) > 3;
            if (solid.some(on)) say("runs into a band", name);
        }
    }

    // A mark in a picture of moments covers no text, and a short text of a cell has one line.
    for (const svg of document.querySelectorAll("svg.story")) {
        if (!shown(svg)) continue;
        const boxes = [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
        for (const mark of svg.querySelectorAll("rect.log")) {
            const box = mark.getBoundingClientRect();
            const hit = boxes.find(([, text]) => Math.min(text.right, box.right) - Math.max(text.left, box.left) > 2 && Math.min(text.bottom, box.bottom) - Math.max(text.top, box.top) > 3);
            if (hit) say("lies below a mark", hit[0]);
        }
    }
    for (const cell of document.querySelectorAll("main td")) {
        const text = cell.textContent.trim();
        if (!shown(cell) || !text || text.length > 8 || cell.children.length) continue;
        const range = document.createRange();
        range.selectNodeContents(cell);
        if (new Set([...range.getClientRects()].map((rect) => Math.round(rect.top))).size > 1) say("breaks a short text", cell);
    }

    const lanes = document.getElementById("lanes");
    if (lanes && lanes.scrollHeight > lanes.clientHeight + 1) say("has lanes below its edge", lanes, `${lanes.scrollHeight} of ${lanes.clientHeight} px`);
    return [...found];
})
