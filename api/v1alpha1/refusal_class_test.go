package v1alpha1_test

import . "github.com/onsi/ginkgo/v2"

const (
	harnessForm     = "harness.name must match ^[a-z][a-z0-9-]*$, such as claude or custom"
	customForm      = "harness.custom is required for the harness 'custom', and allowed for no other"
	binaryForm      = "harness.binary must be an absolute path, or a plain name to look up on PATH that does not start with '-'"
	variableForm    = "an environment variable's name must match ^[A-Za-z_][A-Za-z0-9_]*$ and must not start with LOOP_"
	marketplaceForm = "plugins.marketplaceRepo must be owner/repo, or empty"
	promptForm      = "configMapKeyRef is required with from: ConfigMap, and allowed with no other"
	memoryForm      = "resources.limits.memory must be an amount of memory from 16Mi to 1Pi, as 512Mi or 4Gi"
	rootForm        = "workspace.root must be an absolute path, or start with ~/"
)

var _ = Describe("a SessionClass", func() {
	DescribeTable("is accepted with", accepted("SessionClass"),
		yes("a custom harness", `spec: {harness: {name: custom, binary: /opt/agent, custom: {startArgs: ["{{dir}}"], resumeArgs: [-r, "{{conversationID}}"]}}}`),
		yes("a custom harness without arguments", `spec: {harness: {name: custom, binary: agent, custom: {}}}`),
		yes("a harness by absolute path", `spec: {harness: {name: claude, binary: "/opt/my tools/claude"}}`),
		yes("a harness by plain name", `spec: {harness: {name: claude, binary: claude-next}}`),
		yes("an adapter that may come", `spec: {harness: {name: codex}}`),
		yes("environment variables", `spec: {harness: {env: [{name: PATH, value: /bin}, {name: _a1}, {name: LOOPS, value: "a\nb"}]}}`),
		yes("models and efforts", `spec: {models: [opus, "claude-opus-4[1m]", "a/b:c@d"], efforts: [low, xhigh]}`),
		yes("grace and probe of 0", `spec: {tmux: {harnessKillGraceSeconds: 0, resumeProbeSeconds: 0, retainedSecondsAfterClose: 0}}`),
		yes("a marketplace", `spec: {plugins: {marketplaceRepo: octo/plug-ins.x}}`),
		yes("no marketplace", `spec: {plugins: {marketplaceRepo: ""}}`),
		yes("templates for prompts", `spec: {prompts: {spawn: {from: ConfigMap, configMapKeyRef: {namespace: platform, name: prompts, key: spawn}}, event: {from: None}}}`),
		yes("a bound of memory", `spec: {resources: {limits: {memory: 512Mi}}}`),
		yes("a bound of memory in bytes", `spec: {resources: {limits: {memory: 16777216}}}`),
		yes("a bound of memory in other words", `spec: {resources: {limits: {memory: "1.5e9"}}}`),
		yes("no bound of memory", `spec: {resources: {limits: {}}}`),
		yes("a root below the home directory", `spec: {workspace: {root: "~/work"}}`),
	)

	DescribeTable("is refused with", refused("SessionClass"),
		no("no harness", `spec: {harness: null}`, "spec.harness: Required value"),
		no("a harness without a name", `spec: {harness: {name: null}}`, "spec.harness.name: Required value"),
		no("a harness in upper case", `spec: {harness: {name: Claude}}`, harnessForm),
		no("an empty harness", `spec: {harness: {name: ""}}`, harnessForm),
		no("a harness that is a path", `spec: {harness: {name: /bin/sh}}`, harnessForm),
		no("a harness of 64 characters", `spec: {harness: {name: `+repeat("h", 64)+`}}`, "spec.harness.name: Too long: may not be more than 63"),
		no("the harness custom without its command line", `spec: {harness: {name: custom, binary: /opt/agent}}`, customForm),
		no("a command line without the harness custom", `spec: {harness: {name: claude, custom: {startArgs: [a]}}}`, customForm),
		no("the harness custom without a binary", `spec: {harness: {name: custom, custom: {}}}`, "harness.binary is required for the harness 'custom'"),
		no("a relative binary", `spec: {harness: {binary: bin/claude}}`, binaryForm),
		no("a binary in the current directory", `spec: {harness: {binary: ./claude}}`, binaryForm),
		no("a binary below the home directory", `spec: {harness: {binary: ~/bin/claude}}`, binaryForm),
		no("a binary that looks like a flag", `spec: {harness: {binary: "-x"}}`, binaryForm),
		no("a binary with a NUL character", `spec: {harness: {binary: "/opt/a\0"}}`, binaryForm, "without control characters"),
		no("an empty binary", `spec: {harness: {binary: ""}}`, "spec.harness.binary", "at least 1 chars long"),
		no("an argument with a NUL character", `spec: {harness: {args: ["\0"]}}`, "spec.harness.args[0]", "an argument must not contain a NUL character"),
		no("a start argument with a NUL character", `spec: {harness: {name: custom, binary: a, custom: {startArgs: ["\0"]}}}`, "an argument must not contain a NUL character"),
		no("a resume argument with a NUL character", `spec: {harness: {name: custom, binary: a, custom: {resumeArgs: ["\0"]}}}`, "an argument must not contain a NUL character"),
		no("an argument of 4097 characters", `spec: {harness: {args: [`+repeat("a", 4097)+`]}}`, "spec.harness.args[0]: Too long: may not be more than 4096"),

		no("a variable of ours", `spec: {harness: {env: [{name: LOOP_SESSION_UID}]}}`, variableForm),
		no("a variable that starts with a digit", `spec: {harness: {env: [{name: 1A}]}}`, variableForm),
		no("a variable with a dash", `spec: {harness: {env: [{name: A-B}]}}`, variableForm),
		no("a variable with an equals sign", `spec: {harness: {env: [{name: A=B}]}}`, variableForm),
		no("a variable with a newline", `spec: {harness: {env: [{name: "A\n"}]}}`, variableForm),
		no("a variable without a name", `spec: {harness: {env: [{name: ""}]}}`, variableForm),
		no("a variable twice", `spec: {harness: {env: [{name: A}, {name: A}]}}`, "spec.harness.env[1]: Duplicate value"),
		no("a value with a NUL character", `spec: {harness: {env: [{name: A, value: "\0"}]}}`, "an environment variable's value must not contain a NUL character"),

		no("T02: a bound of memory in thousandths of a byte", `spec: {resources: {limits: {memory: 512m}}}`, memoryForm),
		no("a bound of memory that nothing could start in", `spec: {resources: {limits: {memory: 16383Ki}}}`, memoryForm),
		no("a bound of memory in bytes that nothing could start in", `spec: {resources: {limits: {memory: 512}}}`, memoryForm),
		no("a negative bound of memory", `spec: {resources: {limits: {memory: "-1Gi"}}}`, memoryForm),
		no("a bound of memory that is no amount", `spec: {resources: {limits: {memory: much}}}`, "spec.resources.limits.memory"),
		no("a bound of memory beyond any machine", `spec: {resources: {limits: {memory: 2Pi}}}`, memoryForm),

		no("a template from a ConfigMap that is not named", `spec: {prompts: {spawn: {from: ConfigMap}}}`, promptForm),
		no("a template's ConfigMap without saying that it is from there", `spec: {prompts: {event: {configMapKeyRef: {namespace: a, name: b, key: c}}}}`, promptForm),
		no("a template's ConfigMap without a namespace", `spec: {prompts: {spawn: {from: ConfigMap, configMapKeyRef: {name: b, key: c}}}}`, "configMapKeyRef.namespace: Required value"),
		no("a template from elsewhere", `spec: {prompts: {spawn: {from: Web}}}`, `"BuiltIn", "ConfigMap", "None"`),

		no("a model that starts with a dash", `spec: {models: [opus, "-x"]}`, "spec.models[1]", modelPattern),
		no("an empty model", `spec: {models: [""]}`, "spec.models[0]", modelPattern),
		no("a model twice", `spec: {models: [a, a]}`, "spec.models[1]: Duplicate value"),
		no("an effort that starts with a dash", `spec: {efforts: ["-x"]}`, "spec.efforts[0]", effortPattern),
		no("an effort twice", `spec: {efforts: [low, low]}`, "spec.efforts[1]: Duplicate value"),

		no("a negative grace", `spec: {tmux: {harnessKillGraceSeconds: -1}}`, "spec.tmux.harnessKillGraceSeconds", "greater than or equal to 0"),
		no("a grace of more than an hour", `spec: {tmux: {harnessKillGraceSeconds: 3601}}`, "spec.tmux.harnessKillGraceSeconds", "less than or equal to 3600"),
		no("a grace with a unit", `spec: {tmux: {harnessKillGraceSeconds: 5s}}`, "spec.tmux.harnessKillGraceSeconds", "must be of type integer"),
		no("a negative probe", `spec: {tmux: {resumeProbeSeconds: -1}}`, "spec.tmux.resumeProbeSeconds", "greater than or equal to 0"),
		no("a probe of more than ten minutes", `spec: {tmux: {resumeProbeSeconds: 601}}`, "spec.tmux.resumeProbeSeconds", "less than or equal to 600"),
		no("a negative retention", `spec: {tmux: {retainedSecondsAfterClose: -1}}`, "spec.tmux.retainedSecondsAfterClose", "greater than or equal to 0"),

		no("an unknown trust scope", `spec: {trust: {scope: Home}}`, `supported values: "WorkspaceRoot", "Directory"`),
		no("an unknown acceptance of the disclaimer", `spec: {trust: {acceptBypassPermissions: "Yes"}}`, `supported values: "Auto", "Always", "Never"`),
		no("a marketplace without an owner", `spec: {plugins: {marketplaceRepo: plugins}}`, marketplaceForm),
		no("a marketplace with three parts", `spec: {plugins: {marketplaceRepo: a/b/c}}`, marketplaceForm),
		no("a marketplace by URL", `spec: {plugins: {marketplaceRepo: "https://github.com/a/b"}}`, marketplaceForm),
		no("a marketplace with a newline", `spec: {plugins: {marketplaceRepo: "a/b\n"}}`, marketplaceForm),
		no("a relative root", `spec: {workspace: {root: work}}`, rootForm),
		no("an empty root", `spec: {workspace: {root: ""}}`, rootForm),
		no("a root with a newline", `spec: {workspace: {root: "/a\nb"}}`, rootForm, "without control characters"),
		no("an unknown strategy", `spec: {workspace: {strategy: Copy}}`, `supported values: "Worktree", "Clone"`),
		no("an unknown protocol", `spec: {workspace: {cloneProtocol: git}}`, `supported values: "HTTPS", "SSH"`),
		no("a negative time for undoing", `spec: {workspace: {undoCleanupSeconds: -1}}`, "spec.workspace.undoCleanupSeconds", "greater than or equal to 0"),
		no("an unknown choice of sessions for pull requests", `spec: {sessionPerPullRequest: Sometimes}`, `supported values: "Never", "CrossRepository", "Always"`),
		no("an unknown interaction", `spec: {interaction: Mail}`, `supported values: "WorkItem", "CLI"`),
		no("unknown permissions", `spec: {permissions: Bypass}`, `supported values: "Ask", "Deny", "Allow"`),
		no("a queue without room", `spec: {messages: {maxPending: 0}}`, "spec.messages.maxPending", "greater than or equal to 1"),
		no("an alert before it waits", `spec: {messages: {alertAfterSeconds: -1}}`, "spec.messages.alertAfterSeconds", "greater than or equal to 0"),
		no("a queue without end", `spec: {messages: {maxPending: 10001}}`, "spec.messages.maxPending", "less than or equal to 10000"),
	)
})
