"""mini-SWE-agent. It loads no file of a workspace."""

from trialfleet_agents.agent_kind import AgentKind, SettingsRules
from trialfleet_agents.tool_calls import Call, ToolCalls
from trialfleet_agents.ways_out import EFFORT, FIXED, MODEL

_RESERVED = {
    MODEL: "model.model_name model.model_class model.model_kwargs.model model.model_kwargs.model_list "
    "model.model_kwargs.*fallback*",
    EFFORT: "model.model_kwargs.reasoning_effort",
    "use max_turns: of the agent": "agent.step_limit",
    "use options.max_retries": "model.model_kwargs.*retries",
    "use options.command_timeout_s": "environment.timeout",
    FIXED: "run agent.agent_class agent.cost_limit agent.output_path agent.mode agent.confirm_exit "
    "agent.whitelist_actions agent.wall_time_limit_seconds environment.environment_class environment.cwd "
    "model.litellm_model_registry model.cost_tracking model.model_kwargs.api_* model.model_kwargs.base_url "
    "model.model_kwargs.custom_llm_provider model.model_kwargs.extra_* model.model_kwargs.headers "
    "model.model_kwargs.mock_* model.model_kwargs.web_search_options model.model_kwargs.tools "
    "model.model_kwargs.functions model.model_kwargs.ssl_* model.model_kwargs.aws_* "
    "model.model_kwargs.azure_* model.model_kwargs.vertex_* model.model_kwargs.organization "
    "model.model_kwargs.deployment_id "
    "model.model_kwargs.*callback* model.model_kwargs.service_tier environment.env.HOME environment.env.PATH "
    "environment.env.LD_* environment.env.PYTHON* environment.env.GIT_* environment.env.*_PROXY "
    "environment.env.*_proxy environment.env.*_API_KEY environment.env.*_BASE*",
}
MINI_SWE_AGENT = AgentKind(
    kind="mini-swe-agent",
    adapter="trialfleet_agents.mini_swe_agent.agent:MiniSweAgent",
    rules=SettingsRules(
        reserved=_RESERVED,
    ),
    tool_calls=ToolCalls(
        model="gpt-5.5",
        read=lambda path: Call("bash", {"command": f"cat {path}"}),
        run=lambda command: Call("bash", {"command": command}),
        ends=(Call("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}),),
    ),
    provider="openai",
)
