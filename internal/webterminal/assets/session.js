"use strict";
// Shows one session. What the server says decides; nothing is assumed here.
(() => {
  const at = (id) => document.getElementById(id);
  const box = at("terminal");
  const wait = 1000; // before it connects again, in milliseconds
  const hereEvery = 20000; // how often it says that a person is here, in milliseconds
  const maxPaste = 65536; // bytes

  const term = new Terminal({
    cols: 80, rows: 24, scrollback: 0, cursorBlink: false, disableStdin: true,
    // Links open only as what a browser opens anyway.
    linkHandler: {
      activate: (_e, uri) => {
        const to = URL.parse(uri);
        if (to && (to.protocol === "https:" || to.protocol === "http:") && confirm("Open " + to.href + " ?")) {
          window.open(to.href, "_blank", "noopener,noreferrer");
        }
      },
      allowNonHttpProtocols: false,
    },
  });

  // Nothing that is shown may answer, name the window, reach the clipboard or take the mouse.
  const swallow = () => true;
  for (const final of ["c", "n", "t", "x"]) term.parser.registerCsiHandler({ final }, swallow);
  for (const prefix of [">", "=", "?"]) {
    for (const final of ["c", "n", "q", "t"]) term.parser.registerCsiHandler({ prefix, final }, swallow);
  }
  for (const prefix of ["", "?"]) term.parser.registerCsiHandler({ prefix, intermediates: "$", final: "p" }, swallow);
  for (const final of ["q"]) {
    for (const intermediates of ["$", "+"]) term.parser.registerDcsHandler({ intermediates, final }, swallow);
  }
  for (const osc of [0, 1, 2, 4, 7, 9, 10, 11, 12, 52, 99, 104, 110, 111, 112, 133, 777, 1337]) term.parser.registerOscHandler(osc, swallow);
  const mouse = new Set([9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016]);
  term.parser.registerCsiHandler({ prefix: "?", final: "h" }, (params) => params.length > 0 && params.every((p) => mouse.has(p)));
  term.attachCustomWheelEventHandler(() => false);

  term.open(box);

  let socket = null;
  let state = null;
  let lastHere = 0;
  let over = false;

  function notice(text) {
    at("notice").textContent = text;
    at("notice").hidden = !text;
  }

  // fit makes the letters as large as the window allows; the session keeps its size.
  function fit() {
    const screen = box.querySelector(".xterm-screen");
    if (!screen || !screen.clientWidth) return;
    const room = at("screen");
    const factor = Math.min((room.clientWidth - 16) / screen.clientWidth, (room.clientHeight - 16) / screen.clientHeight);
    const size = Math.max(6, Math.min(22, Math.floor(term.options.fontSize * factor * 2) / 2));
    if (size !== term.options.fontSize) term.options.fontSize = size;
  }

  function show() {
    const writing = state !== null && state.writer === "you";
    let text = "read-only";
    if (!state) text = "connecting…";
    else if (state.ended) text = "read-only: " + state.ended;
    else if (writing) text = state.inFront ? "you type" : "you type, but another pane is in front: keys go nowhere";
    else if (state.writer === "other") text = "read-only: somebody else types";
    at("state").textContent = text;
    at("state").className = writing ? "writing" : "";
    const may = state && state.writable && !state.ended;
    at("take").hidden = !(may && state.writer === "nobody");
    at("takeover").hidden = !(may && state.writer === "other");
    at("release").hidden = !writing;
    term.options.disableStdin = !writing;
  }

  function send(type, text) {
    if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type, text }));
  }

  function here() {
    const now = Date.now();
    if (now - lastHere < hereEvery) return;
    lastHere = now;
    send("here", "");
  }

  function connect() {
    socket = new WebSocket(location.origin.replace(/^http/, "ws") + box.dataset.socket);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      term.reset();
      lastHere = Date.now();
    };
    socket.onmessage = (e) => {
      if (typeof e.data !== "string") {
        term.write(new Uint8Array(e.data));
        return;
      }
      const said = JSON.parse(e.data);
      if (said.type === "notice") {
        notice(said.text);
        return;
      }
      const fresh = !state || state.columns !== said.columns || state.rows !== said.rows;
      const mine = state !== null && state.writer === "you";
      state = said;
      if (fresh) {
        term.resize(said.columns, said.rows);
        requestAnimationFrame(fit);
      }
      if (!mine && said.writer === "you") {
        notice("");
        term.focus();
      }
      show();
    };
    socket.onclose = (e) => {
      state = null;
      show();
      if (over) return;
      switch (e.code) {
      case 4000: // ended
      case 4002: // idle
        over = true;
        at("state").textContent = "disconnected: " + e.reason;
        notice(e.reason + ". Load the page again to go on.");
        return;
      case 4003:
        location.reload();
        return;
      case 4001:
      case 4004:
      default:
        at("state").textContent = "disconnected" + (e.reason ? ": " + e.reason : "") + "; trying again";
        setTimeout(again, wait);
      }
    };
  }

  // again connects when the page can be loaded, and else shows what the server says instead.
  async function again() {
    try {
      const answer = await fetch(location.pathname, { redirect: "manual", headers: { Accept: "text/html" } });
      if (answer.ok) connect();
      else if (answer.type === "opaqueredirect" || answer.status === 404 || answer.status === 409) location.reload();
      else setTimeout(again, 2 * wait);
    } catch {
      setTimeout(again, 2 * wait);
    }
  }

  term.onData((data) => {
    if (state && state.writer === "you") send("keys", data);
  });

  // A paste is a text, and no keys: the server frames it where the application asks for that.
  document.addEventListener("paste", (e) => {
    e.preventDefault();
    e.stopImmediatePropagation();
    if (!state || state.writer !== "you") return;
    const text = e.clipboardData.getData("text/plain").replace(/\r\n?/g, "\n");
    if (!text) return;
    if (new TextEncoder().encode(text).length > maxPaste) {
      notice("That is too long to paste: at most 64 KiB are taken. Nothing was typed.");
      return;
    }
    const lines = text.split("\n").length;
    // What the emulator knows of frames is tmux's own wish, from 3.4 on, and not the program's.
    if (lines > 1 && !state.framed &&
      !confirm("Paste " + lines + " lines? A program that has not asked for framed pastes takes each of them by itself.")) return;
    send("paste", text);
  }, true);

  at("take").addEventListener("click", () => send("take", ""));
  at("takeover").addEventListener("click", () => send("takeover", ""));
  at("release").addEventListener("click", () => send("release", ""));
  for (const sign of ["mousemove", "keydown", "pointerdown", "wheel", "touchstart"]) {
    document.addEventListener(sign, here, { passive: true, capture: true });
  }
  window.addEventListener("resize", () => requestAnimationFrame(fit));
  // What the page shows, for tools that read it and for tests.
  window.theLoopTerminal = term;
  show();
  connect();
})();
