// What the-loop hears of opencode: a plugin of its terminal interface that runs the hook
// binary on what happens there, with the event as JSON on standard input, as Claude Code
// runs its hooks. Measured with opencode 1.18.33. Nothing here may throw: opencode goes
// on without us.
import { spawn } from "node:child_process"

// How often is looked at what opencode tells no event of, in milliseconds.
const lookEvery = 250

async function tui(api, options) {
  const argv = options?.hook
  if (!Array.isArray(argv) || argv.length === 0) return

  // One after the other, so that the journal has the order of the events.
  let last = Promise.resolve()
  const tell = (hook_event_name, fields, answer) => {
    last = last.then(() => run(argv, { hook_event_name, ...fields }))
    if (answer) last = last.then(answer)
    last = last.catch(() => {})
  }
  const child = (id) => Boolean(id && api.state.session.get(id)?.parentID)
  const shown = () => (api.route.current.name === "session" ? api.route.current.params?.sessionID : undefined)

  let ready = false
  let current // the conversation on the screen
  let busy = false
  let dialog = false // one that a person opened
  const asked = new Map() // open questions and permissions, with their conversation
  let told = "Stop"

  // What it does, when that is another thing than before.
  const settle = () => {
    const now = asked.size > 0 ? "Asked" : dialog ? "Dialog" : busy ? "Busy" : "Stop"
    if (now === told || !ready) return
    told = now
    if (now !== "Asked") tell(now, { session_id: current }) // its own note has told
  }

  const users = new Set() // messages of the user
  const waiting = new Map() // texts whose message is not known yet
  const seen = new Set() // texts that were told
  const took = (part) => {
    if (seen.has(part.id)) return
    seen.add(part.id)
    tell("UserPromptSubmit", { session_id: part.sessionID, prompt: part.text })
  }
  api.event.on("message.updated", ({ properties: { info } }) => {
    if (info.role !== "user" || child(info.sessionID)) return
    users.add(info.id)
    for (const part of waiting.get(info.id) ?? []) took(part)
    waiting.delete(info.id)
  })
  api.event.on("message.part.updated", ({ properties: { part } }) => {
    if (part.type !== "text" || part.synthetic || part.ignored || part.time || child(part.sessionID)) return
    if (users.has(part.messageID)) return took(part)
    waiting.set(part.messageID, [...(waiting.get(part.messageID) ?? []), part])
  })

  api.event.on("session.status", ({ properties: { sessionID, status } }) => {
    if (status.type === "idle") {
      for (const [id, session] of asked) if (session === sessionID) asked.delete(id)
      waiting.clear()
    }
    if (child(sessionID)) return settle()
    busy = status.type !== "idle"
    settle()
  })
  api.event.on("permission.asked", ({ properties: p }) => {
    asked.set(p.id, p.sessionID)
    told = "Asked"
    tell("PermissionRequest", { session_id: current, tool_name: p.permission }, (decision) => {
      if (!decision) return
      return api.client.permission.reply({ requestID: p.id, reply: decision === "allow" ? "once" : "reject" })
    })
  })
  api.event.on("question.asked", ({ properties: q }) => {
    asked.set(q.id, q.sessionID)
    told = "Asked"
    tell("PermissionRequest", { session_id: current, tool_name: "AskUserQuestion" }, (decision) => {
      if (decision === "deny") return api.client.question.reject({ requestID: q.id })
    })
  })
  for (const type of ["permission.replied", "question.replied", "question.rejected"])
    api.event.on(type, ({ properties: { requestID } }) => {
      asked.delete(requestID)
      settle()
    })

  const look = () => {
    const id = shown()
    if (!ready) {
      // Before it has the focus, what is typed is lost.
      if (!api.state.ready || !api.renderer.currentFocusedRenderable || api.ui.dialog.open) return
      ready = true
      current = id
      tell("SessionStart", { session_id: id, source: id ? "resume" : "startup" })
    }
    if (id && id !== current) {
      current = id
      if (!child(id)) tell("SessionStart", { session_id: id, source: "switch" })
    }
    dialog = api.ui.dialog.open
    settle()
  }
  const timer = setInterval(() => {
    try {
      look()
    } catch {}
  }, lookEvery)
  api.lifecycle.onDispose(() => {
    clearInterval(timer)
    tell("SessionEnd", { session_id: current, reason: "other" })
    return last
  })
}

// run runs the hook, and says what it decided.
function run([file, ...args], event) {
  return new Promise((done) => {
    const proc = spawn(file, args, { stdio: ["pipe", "pipe", "ignore"] })
    let out = ""
    const timer = setTimeout(() => proc.kill("SIGKILL"), 10_000)
    const end = () => {
      clearTimeout(timer)
      try {
        done(JSON.parse(out).hookSpecificOutput.decision.behavior)
      } catch {
        done(undefined)
      }
    }
    proc.on("error", end)
    proc.on("close", end)
    proc.stdin.on("error", () => {})
    proc.stdout.on("data", (chunk) => (out += chunk))
    proc.stdin.end(JSON.stringify(event))
  })
}

export default { id: "the-loop", tui }
