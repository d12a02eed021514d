"""Gemini CLI."""

from trialfleet_agents.agent_kind import AgentFiles, AgentKind, SettingsRules
from trialfleet_agents.skill_faults import SkillFault
from trialfleet_agents.tool_calls import Call, ToolCalls, call_reader
from trialfleet_agents.ways_out import FIXED, HOOKS, MCP, MODEL, SKILLS, TEXT
from trialfleet_deliveries.skills import SHARED_FOLDER

_RESERVED = {
    MODEL: "model.name modelConfigs.modelIdResolutions modelConfigs.classifierIdResolutions "
    "modelConfigs.modelChains modelConfigs.modelDefinitions modelConfigs.*liases.*.modelConfig.model "
    "modelConfigs.*liases.*.extends modelConfigs.*verrides.*.modelConfig.model "
    "agents.overrides.*.modelConfig.model general.plan.modelRouting experimental.gemma* "
    "experimental.dynamicModelConfiguration agents.browser.visualModel",
    HOOKS: "hooks hooksConfig",
    MCP: "mcp mcpServers",
    SKILLS: "skills",
    TEXT: "context.fileName context.includeDirectories context.loadMemoryFromIncludeDirectories "
    "context.discoveryMaxDirs context.memoryBoundaryMarkers experimental.autoMemory",
    "use max_turns: of the agent": "model.maxSessionTurns",
    "use options.max_retries": "general.retryFetchErrors general.maxAttempts",
    FIXED: "security privacy telemetry admin ide advanced policyPaths adminPolicyPaths general.*AutoUpdate* "
    "general.defaultApprovalMode general.checkpointing general.devtools output tools.exclude tools.allowed "
    "tools.confirmationRequired tools.sandbox* tools.discoveryCommand tools.callCommand extensions billing "
    "agents.browser agents.overrides.*.runConfig experimental.extension* experimental.directWebFetch "
    "experimental.voice* experimental.worktrees "
    "modelConfigs.*.*.modelConfig.generateContentConfig.httpOptions",
}
GEMINI = AgentKind(
    kind="gemini",
    adapter="trialfleet_agents.gemini.agent:GeminiCli",
    files=AgentFiles(
        roots=("GEMINI.md",),
        skills=SHARED_FOLDER,
        names=(".agents", ".gemini"),
        home=(".gemini/GEMINI.md", "GEMINI.md"),
        settings=(".gemini/settings.json",),
        left_out=(".env", ".gemini/.env", ".gemini/extensions/*", ".gemini/hooks/*", ".gemini/policies/*"),
        refused_skills=(
            SkillFault.BYTE_ORDER_MARK,
            SkillFault.NO_FRONT_MATTER,
            SkillFault.NO_NAME,
            SkillFault.NO_DESCRIPTION,
        ),
    ),
    rules=SettingsRules(
        reserved=_RESERVED,
        in_files="$schema ui context.includeDirectoryTree",
    ),
    tool_calls=ToolCalls(
        model="gemini-2.5-pro",
        read=call_reader("read_file", "file_path"),
        run=lambda command: Call("run_shell_command", {"command": command}),
    ),
    side_models=("gemini-*flash*",),
    provider="google",
)
