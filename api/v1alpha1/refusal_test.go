package v1alpha1_test

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// refused is the body of a table whose entries are refused: the minimal object of
// the kind with a change, and what the refusal must say.
func refused(kind string) func(ctx context.Context, change string, words ...string) {
	return func(ctx context.Context, change string, words ...string) {
		expectKindRefused(ctx, kind, change, words...)
	}
}

// accepted is the body of a table whose entries are accepted.
func accepted(kind string) func(ctx context.Context, change string) {
	return func(ctx context.Context, change string) {
		mustCreate(ctx, newNamespace(ctx), object(kind, change))
	}
}

// expectKindRefused: the minimal object of the kind with the change is refused in
// these words, and nothing is left of it.
func expectKindRefused(ctx context.Context, kind, change string, words ...string) {
	GinkgoHelper()
	obj := object(kind, change)
	expectRefused(create(ctx, "default", obj), words...)
	expectAbsent(ctx, obj)
}

// no is an entry of a table of refusals.
func no(why, change string, words ...any) TableEntry {
	return Entry(why, append([]any{NodeTimeout(time.Minute), change}, words...)...)
}

// yes is an entry with nothing but a change.
func yes(what, change string) TableEntry { return Entry(what, NodeTimeout(time.Minute), change) }

const (
	anyName       = "lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"
	nameIs63      = "metadata.name must be at most 63 characters"
	standingName  = "metadata.name must match ^[a-z0-9][a-z0-9-]{0,39}$: at most 40 lower-case letters, digits and '-', neither starting nor ending with '-'"
	absolute      = "must be an absolute path"
	oneKind       = `supported values: "WorkItemSession", "StandingSession"`
	modelPattern  = `should match '^[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*$'`
	effortPattern = `should match '^[A-Za-z0-9][A-Za-z0-9._-]*$'`
)

func repeat(s string, n int) string { return strings.Repeat(s, n) }

var _ = Describe("every kind", func() {
	for _, kind := range kinds {
		longest := 63
		if kind == "StandingSession" {
			longest = 40
		}
		It("is accepted with the longest name: "+kind, func(ctx context.Context) {
			mustCreate(ctx, newNamespace(ctx), object(kind, `metadata: {name: `+repeat("n", longest)+`}`))
		}, NodeTimeout(time.Minute))

		It("M13 is refused with a name of 64 characters, the most being named: "+kind, func(ctx context.Context) {
			want := nameIs63
			if kind == "StandingSession" {
				want = standingName
			}
			expectKindRefused(ctx, kind, `metadata: {name: `+repeat("n", 64)+`}`, want)
		}, NodeTimeout(time.Minute))

		It("is refused without its spec or with a spec that is no object: "+kind, func(ctx context.Context) {
			if kind != "SessionHost" { // has defaults for all of it
				expectKindRefused(ctx, kind, `spec: null`, "spec: Required value")
			}
			expectKindRefused(ctx, kind, `spec: [1]`, "spec", "must be of type object")
		}, NodeTimeout(time.Minute))
	}

	It("has no rule of CEL without a message, nor a message that ends in a full stop", func(ctx context.Context) {
		rules := 0
		for kind, crd := range crds(ctx) {
			for _, rule := range celRules(crd.Spec.Versions[0].Schema.OpenAPIV3Schema) {
				rules++
				Expect(rule.Message).NotTo(BeEmpty(), "%s: %s", kind, rule.Rule)
				Expect(rule.Message).NotTo(HaveSuffix("."), "%s: %s", kind, rule.Rule)
			}
		}
		Expect(rules).To(BeNumerically(">", 30))
	}, NodeTimeout(time.Minute))
})

// celRules are all rules of a schema.
func celRules(schema *apiextensionsv1.JSONSchemaProps) []apiextensionsv1.ValidationRule {
	rules := slices.Clone([]apiextensionsv1.ValidationRule(schema.XValidations))
	for _, field := range schema.Properties {
		rules = append(rules, celRules(&field)...)
	}
	for _, nested := range children(schema) {
		rules = append(rules, celRules(nested)...)
	}
	return rules
}

// placementRefusals are for what both kinds of sessions have in common.
func placementRefusals() []TableEntry {
	return []TableEntry{
		no("an empty hostName", `spec: {hostName: ""}`, "spec.hostName", "at least 1 chars long"),
		no("a hostName that cannot be a label value", `spec: {hostName: "build host!"}`, "hostName must be the name of a SessionHost: "+anyName),
		no("a hostName in upper case", `spec: {hostName: Build1}`, "hostName must be the name of a SessionHost: "+anyName),
		no("a hostName with a newline", `spec: {hostName: "build1\n"}`, "hostName must be the name of a SessionHost: "+anyName),
		no("a hostName of 64 characters", `spec: {hostName: `+repeat("h", 64)+`}`, "spec.hostName: Too long: may not be more than 63"),
		no("an empty className", `spec: {className: ""}`, "spec.className", "at least 1 chars long"),
		no("a className with a slash", `spec: {className: "a/b"}`, "className must be the name of a SessionClass: "+anyName),
		no("a className of 64 characters", `spec: {className: `+repeat("c", 64)+`}`, "spec.className: Too long: may not be more than 63"),
		no("a host selector that is a text", `spec: {hostSelector: zone=a}`, "spec.hostSelector", "must be of type object"),
		no("an unknown deliveryPolicy", `spec: {deliveryPolicy: Pause}`, `supported values: "Deliver", "Drop", "Hold"`),
		no("a model that starts with a dash", `spec: {model: "--dangerous"}`, "spec.model", modelPattern),
		no("a model with a blank", `spec: {model: "a b"}`, "spec.model", modelPattern),
		no("a model with a newline", `spec: {model: "opus\n"}`, "spec.model", modelPattern),
		no("a model of 129 characters", `spec: {model: `+repeat("m", 129)+`}`, "spec.model: Too long: may not be more than 128"),
		no("an effort that starts with a dash", `spec: {effort: "-x"}`, "spec.effort", effortPattern),
		no("an effort with a metacharacter", `spec: {effort: "high;id"}`, "spec.effort", effortPattern),
		no("an effort of 65 characters", `spec: {effort: `+repeat("e", 65)+`}`, "spec.effort: Too long: may not be more than 64"),
		no("an empty prompt", `spec: {prompt: ""}`, "spec.prompt", "at least 1 chars long"),
		no("a prompt of 65537 characters", `spec: {prompt: `+repeat("p", 65537)+`}`, "spec.prompt: Too long: may not be more than 65536"),
		no("a prompt of 65537 bytes in fewer characters", `spec: {prompt: `+repeat("é", 32768)+`p}`, "prompt must be at most 65536 bytes"),
	}
}

// placementAccepted is their counterpart.
func placementAccepted() []TableEntry {
	return []TableEntry{
		yes("a host name with dots", `spec: {hostName: build-1.example.com}`),
		yes("a class, host labels, a model and an effort", `spec: {className: big, hostSelector: {matchLabels: {zone: a}}, model: "us.anthropic/claude-opus@1[1m]:v2", effort: xhigh}`),
		yes("a prompt of 65536 bytes in multi-byte characters", `spec: {prompt: `+repeat("é", 32768)+`}`),
		yes("the delivery policy Hold", `spec: {deliveryPolicy: Hold}`),
	}
}

var _ = Describe("a StandingSession", func() {
	bad := refused("StandingSession")
	DescribeTable("is refused, with the allowed form, for a name with", func(ctx context.Context, name string) {
		bad(ctx, `metadata: {name: `+name+`}`, standingName)
	},
		yes("upper case", `Supervisor`),
		yes("a dot", `super.visor`),
		yes("an underscore", `super_visor`),
		yes("41 characters", repeat("s", 41)),
		yes("C009 a trailing newline", `"supervisor\n"`),
		yes("a leading newline", `"\nsupervisor"`),
		yes("N07 a leading -", `"-s"`),
		yes("a trailing -", `"s-"`),
		yes("N07 a leading $", `"$s"`),
		yes("N07 a leading @", `"@s"`),
		yes("N07 a leading %", `"%s"`),
		yes("N07 a leading =", `"=s"`),
		yes("N07 a leading +", `"+s"`),
		yes("N07 a leading !", `"!s"`),
		yes("N07 a leading {", `"{s"`),
		yes("N07 a leading blank", `" s"`),
		yes("N07 a blank inside", `"s t"`),
		yes("a colon", `"standing:s"`),
		yes("a tilde", `"~s"`),
		yes("a letter beyond ASCII", `"süper"`),
		yes("N09 a letter that only looks like ASCII", `"ѕuper"`),
		yes("a NUL character", `"s\0"`),
		yes("N10 300 characters", repeat("s", 300)),
	)

	DescribeTable("is accepted with", accepted("StandingSession"), placementAccepted(),
		yes("a name of 40 characters", `metadata: {name: `+repeat("s", 40)+`}`),
		yes("a name of one digit", `metadata: {name: "1"}`),
		yes("a prompt file alone", `spec: {promptFile: /etc/the-loop/brief.md}`),
		yes("a prompt file below the home directory", `spec: {promptFile: ~/brief.md}`),
		yes("a prompt from a ConfigMap alone", `spec: {promptFrom: {configMapKeyRef: {name: briefs, key: hello.md}}}`),
		yes("an absolute directory", `spec: {cwd: "/srv/a b/ü"}`),
		yes("the home directory", `spec: {cwd: "~"}`),
		yes("a directory below it", `spec: {cwd: "~/src"}`),
		yes("arguments of any text", `spec: {harnessArgs: ["", "-x", "a\nb", "ü;#"]}`),
	)

	DescribeTable("is refused with", bad, placementRefusals(),
		no("a prompt and a prompt file", `spec: {prompt: a, promptFile: /a}`, "at most one of spec.prompt, spec.promptFile and spec.promptFrom"),
		no("a prompt and a prompt from a ConfigMap", `spec: {prompt: a, promptFrom: {configMapKeyRef: {name: a, key: b}}}`, "at most one of spec.prompt, spec.promptFile and spec.promptFrom"),
		no("a prompt file and a prompt from a ConfigMap", `spec: {promptFile: /a, promptFrom: {configMapKeyRef: {name: a, key: b}}}`, "at most one of spec.prompt, spec.promptFile and spec.promptFrom"),
		no("all three", `spec: {prompt: a, promptFile: /a, promptFrom: {configMapKeyRef: {name: a, key: b}}}`, "at most one of spec.prompt, spec.promptFile and spec.promptFrom"),
		no("a prompt from nowhere", `spec: {promptFrom: {}}`, "spec.promptFrom.configMapKeyRef: Required value"),
		no("a prompt from a ConfigMap without a key", `spec: {promptFrom: {configMapKeyRef: {name: a}}}`, "spec.promptFrom.configMapKeyRef.key: Required value"),
		no("a prompt from an empty key", `spec: {promptFrom: {configMapKeyRef: {name: a, key: ""}}}`, "spec.promptFrom.configMapKeyRef.key", "at least 1 chars long"),
		no("a prompt from a ConfigMap without a name", `spec: {promptFrom: {configMapKeyRef: {name: "", key: a}}}`, "spec.promptFrom.configMapKeyRef.name", "at least 1 chars long"),
		no("a relative directory", `spec: {cwd: src}`, "spec.cwd "+absolute+", or start with ~/"),
		no("a directory of the parent", `spec: {cwd: ../src}`, "spec.cwd "+absolute+", or start with ~/"),
		no("an empty directory", `spec: {cwd: ""}`, "spec.cwd "+absolute+", or start with ~/"),
		no("another user's home", `spec: {cwd: ~root/src}`, "spec.cwd "+absolute+", or start with ~/"),
		no("a directory with a newline", `spec: {cwd: "/srv\n"}`, "spec.cwd "+absolute+", or start with ~/, without control characters"),
		no("a directory with a NUL character", `spec: {cwd: "/srv\0"}`, "without control characters"),
		no("a relative prompt file", `spec: {promptFile: brief.md}`, "spec.promptFile "+absolute+", or start with ~/"),
		no("a prompt file with a control character", `spec: {promptFile: "/a\eb"}`, "spec.promptFile "+absolute, "without control characters"),
		no("a state of work items", `spec: {state: CleanedUp}`, `supported values: "Running", "Stopped"`),
		no("a restart policy of work items", `spec: {restartPolicy: OnMessage}`, `supported values: "Always", "Never"`),
		no("65 arguments", `spec: {harnessArgs: [`+repeat(`a,`, 65)+`]}`, "spec.harnessArgs: Too many: 65: must have at most 64 items"),
		no("an argument of 4097 characters", `spec: {harnessArgs: [`+repeat("a", 4097)+`]}`, "spec.harnessArgs[0]: Too long: may not be more than 4096"),
		no("an argument with a NUL character", `spec: {harnessArgs: [a, "b\0c"]}`, "spec.harnessArgs[1]", "an argument must not contain a NUL character"),
		no("arguments in one text", `spec: {harnessArgs: "--a --b"}`, "spec.harnessArgs", "must be of type array"),
		no("autoStart as a text", `spec: {autoStart: "true"}`, "spec.autoStart", "must be of type boolean"),
	)
})

var _ = Describe("a SessionHost", func() {
	DescribeTable("is accepted with", accepted("SessionHost"),
		yes("nothing but a name", `{}`),
		yes("no room at all", `spec: {maxSessions: 0}`),
		yes("a fully qualified name", `metadata: {name: build-1.example.com}`),
	)
	DescribeTable("is refused with", refused("SessionHost"),
		no("an unknown scheduling", `spec: {scheduling: Off}`, `supported values: "Enabled", "Cordoned", "Draining"`),
		no("a negative number of sessions", `spec: {maxSessions: -1}`, "spec.maxSessions", "greater than or equal to 0"),
		no("more sessions than fit", `spec: {maxSessions: 10001}`, "spec.maxSessions", "less than or equal to 10000"),
	)
})
