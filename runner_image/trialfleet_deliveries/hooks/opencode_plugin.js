// A plugin of OpenCode: calls trialfleet's hook scripts around its tools, with the events that Claude Code would send.
// `trialfleet-hooks.json`, in the folder above, has shell commands: {"before": [...], "after": [...]}.
// A script that fails says nothing: a hook never stops the agent.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"

const COMMANDS = JSON.parse(readFileSync(new URL("../trialfleet-hooks.json", import.meta.url), "utf8"))
const TOOLS = { read: "Read", edit: "Edit", write: "Write", apply_patch: "Edit", bash: "Bash", grep: "Grep", glob: "Glob" }
const PATIENCE_MS = 10000

function ask(command, event) {
  return new Promise((resolve) => {
    const child = spawn("/bin/sh", ["-c", command], { stdio: ["pipe", "pipe", "ignore"], timeout: PATIENCE_MS })
    const said = []
    child.on("error", () => resolve({}))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (data) => said.push(data))
    child.on("close", () => {
      try {
        resolve(JSON.parse(Buffer.concat(said).toString()).hookSpecificOutput ?? {})
      } catch {
        resolve({})
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

function event(name, cwd, input, given) {
  const path = given?.filePath ?? given?.path
  const command = given?.command ?? given?.patchText
  return {
    hook_event_name: name,
    session_id: input.sessionID,
    cwd,
    tool_name: TOOLS[input.tool] ?? input.tool,
    tool_input: { ...(path ? { path } : {}), ...(command ? { command } : {}) },
  }
}

export const Trialfleet = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    for (const command of COMMANDS.before) {
      const said = await ask(command, event("PreToolUse", directory, input, output.args))
      if (said.permissionDecision === "deny") throw new Error(said.permissionDecisionReason)
    }
  },
  "tool.execute.after": async (input, output) => {
    for (const command of COMMANDS.after) {
      const said = await ask(command, event("PostToolUse", directory, input, input.args))
      if (said.additionalContext) output.output += `\n\n${said.additionalContext}`
    }
  },
})
