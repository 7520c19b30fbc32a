package cliconfig

import (
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// lines are the problems of a file that is refused, each as "path (line:column): message".
func lines(text string) []string {
	GinkgoHelper()
	c, err := Parse("f.yaml", []byte(text))
	Expect(c).To(BeNil())
	var invalid *InvalidError
	Expect(errors.As(err, &invalid)).To(BeTrue(), "error %v", err)
	out := strings.Split(err.Error(), "\n  ")
	Expect(out[0]).To(Equal("the configuration file f.yaml cannot be used:"))
	Expect(out).To(HaveLen(len(invalid.Problems) + 1))
	return out[1:]
}

func parsed(text string) *Config {
	GinkgoHelper()
	c, err := Parse("f.yaml", []byte(text))
	Expect(err).NotTo(HaveOccurred())
	return c
}

// entry is a file with one session that has this further key.
func entry(more string) string {
	return "standingSessions:\n  sessions:\n    - name: a\n      " + strings.ReplaceAll(more, "\n", "\n      ") + "\n"
}

var _ = Describe("Parse", func() {
	It("reads every key", func() {
		c := parsed(`
version: "1"
routing:
  defaultHarness: claude
  harnessArgs:
    claude: [--verbose]
    custom: []
  spawnWorkdir: ~/work
  maxConcurrentDispatches: 2
standingSessions:
  enabled: true
  sessions:
    - name: supervisor
      description: Watches.
      harness: custom
      harnessArgs: [-x, "1"]
      cwd: /srv
      prompt: |
        Watch.
      autoStart: false
      slack: {enabled: true, channel: C1}
    - name: b
      class: special
      promptFile: ~/brief.md
`)
		Expect(c.File).To(Equal("f.yaml"))
		Expect(c.Ignored).To(BeEmpty())
		Expect(c.Routing).To(Equal(Routing{
			DefaultHarness: "claude", SpawnWorkdir: "~/work", MaxConcurrentDispatches: new(2),
			HarnessArgs: map[string][]string{"claude": {"--verbose"}, "custom": {}},
		}))
		Expect(c.StandingSessions).To(Equal(StandingSessions{Enabled: true, Sessions: []Session{{
			Name: "supervisor", Description: "Watches.", Harness: "custom", HarnessArgs: []string{"-x", "1"}, Cwd: "/srv",
			Prompt: "Watch.\n", Slack: &Slack{Enabled: true, Channel: "C1"},
			Place: Place{Path: "standingSessions.sessions[0]", Line: 13, Column: 7},
		}, {
			Name: "b", Class: "special", PromptFile: "~/brief.md", AutoStart: true,
			Place: Place{Path: "standingSessions.sessions[1]", Line: 22, Column: 7},
		}}}))
	})

	It("is off by default, and an entry is started automatically by default", func() {
		c := parsed("standingSessions:\n  sessions:\n    - name: a\n")
		Expect(c.StandingSessions.Enabled).To(BeFalse())
		Expect(c.StandingSessions.Sessions[0].AutoStart).To(BeTrue())
	})

	It("keeps arguments that were left out apart from none", func() {
		Expect(parsed(entry("harnessArgs: []")).StandingSessions.Sessions[0].HarnessArgs).To(And(Not(BeNil()), BeEmpty()))
		Expect(parsed(entry("cwd: /")).StandingSessions.Sessions[0].HarnessArgs).To(BeNil())
		Expect(lines(entry("harnessArgs:"))).To(ConsistOf(
			"standingSessions.sessions[0].harnessArgs (4:19): must be a list, and is empty: remove the key, or write [] for none"))
	})

	DescribeTable("declares nothing in a file with nothing in it", func(text string) {
		Expect(parsed(text)).To(Equal(&Config{File: "f.yaml"}))
	},
		Entry("empty", ""),
		Entry("a comment", "# nothing\n"),
		Entry("a marker", "---\n"),
		Entry("null", "null\n"),
		Entry("an empty mapping", "{}\n"),
	)

	It("takes the rest of the specification's file as it is, and says what nothing acts upon", func() {
		c := parsed("version: \"1\"\nservice: {port: 1}\nrouting:\n  enabled: true\n  tmux: [anything]\nchannels: &x {slack: {}}\n")
		var places []string
		for _, p := range c.Ignored {
			places = append(places, p.String())
		}
		Expect(places).To(Equal([]string{"service (2:1)", "routing.enabled (4:3)", "routing.tmux (5:3)", "channels (6:1)"}))
	})

	It("reports everything that is wrong at once, in the order of the file", func() {
		Expect(lines(`
standingSessions:
  enabled: "yes"
  sessions:
    - name: Supervisor
      autostart: true
    - description: 7
    - name: c
      cwd: work
      slack: {on: true}
rooting: {}
`)).To(Equal([]string{
			`standingSessions.enabled (3:12): must be true or false, and is the string "yes"`,
			`standingSessions.sessions[0].name (5:13): "Supervisor" cannot be a name: at most 40 lower-case letters, digits and '-', neither starting nor ending with '-'`,
			`standingSessions.sessions[0].autostart (6:7): "autostart" is not a key here: did you mean "autoStart"? (known are name, description, harness, class, harnessArgs, cwd, prompt, promptFile, autoStart, slack)`,
			`standingSessions.sessions[1] (7:7): name is missing: every session is addressed by one`,
			`standingSessions.sessions[1].description (7:20): must be a string, and is the number "7": put it in quotes`,
			`standingSessions.sessions[2].cwd (9:12): "work" must be an absolute path, or start with ~/, without control characters: a relative one would depend on where the-loop is started`,
			`standingSessions.sessions[2].slack.on (10:15): "on" is not a key here (known are enabled, channel)`,
			`rooting (11:1): "rooting" is not a key here: did you mean "routing"? (known are standingSessions, routing)`,
		}))
	})

	It("C161 refuses the whole block for two entries of one name, naming both places", func() {
		Expect(lines("standingSessions:\n  sessions:\n    - name: a\n    - name: b\n    - {autoStart: false, name: a}\n    - name: a\n")).To(Equal([]string{
			`standingSessions.sessions[2].name (5:32): "a" is the name of standingSessions.sessions[0].name (3:13) already: a name is one session, so none of the block is used`,
			`standingSessions.sessions[3].name (6:13): "a" is the name of standingSessions.sessions[0].name (3:13) already: a name is one session, so none of the block is used`,
		}))
	})

	It("C162 refuses an entry with both prompt and promptFile", func() {
		Expect(lines(entry("promptFile: /p\nprompt: x"))).To(ConsistOf(
			"standingSessions.sessions[0].promptFile (4:19): prompt is set too, at 5:15, and there is no precedence between them: remove one of the two"))
		Expect(parsed(entry("promptFile: /p\nprompt: \"\"")).StandingSessions.Sessions[0].PromptFile).To(Equal("/p"))
	})

	It("does not read the promptFile", func() {
		Expect(parsed(entry("promptFile: /nonexistent/brief")).StandingSessions.Sessions[0].PromptFile).To(Equal("/nonexistent/brief"))
	})

	long := strings.Repeat("x", 5000)
	DescribeTable("refuses, naming the place", func(text string, want ...string) {
		got := lines(text)
		Expect(got).To(HaveLen(len(want)), "%q", got)
		for i, w := range want {
			Expect(got[i]).To(HavePrefix(w))
		}
	},
		Entry("no YAML", "a: [", "it is no YAML: line 1: "),
		Entry("two documents", "{}\n---\n{}\n", "there is more than one YAML document in it"),
		Entry("a list", "- a\n", "1:1: must be a mapping, and is a list"),
		Entry("a text", "hello\n", `1:1: must be a mapping, and is the string "hello"`),
		Entry("a block that is a list", "standingSessions: []\n", "standingSessions (1:19): must be a mapping, and is a list"),
		Entry("a block that is empty", "standingSessions:\n", "standingSessions (1:18): must be a mapping, and is empty: remove the key"),
		Entry("sessions that are a mapping", "standingSessions: {sessions: {a: {}}}\n", "standingSessions.sessions (1:30): must be a list, and is a mapping"),
		Entry("sessions that are empty", "standingSessions:\n  sessions:\n", "standingSessions.sessions (2:12): must be a list, and is empty: remove the key, or write [] for none"),
		Entry("an entry that is a text", "standingSessions: {sessions: [a]}\n", `standingSessions.sessions[0] (1:31): must be a mapping, and is the string "a"`),
		Entry("an alias", "x: &n a\nstandingSessions: {sessions: [*n]}\n",
			`x (1:1): "x" is not a key here (known`, `standingSessions.sessions[0] (2:31): must be a mapping, and is an alias: aliases are not read, write the value out`),
		Entry("a merge key", "standingSessions: {<<: {enabled: true}}\n", "standingSessions (1:20): a key must be a plain string: merge keys"),
		Entry("a key that is a number", "1: a\n", "1:1: a key must be a plain string"),
		Entry("a key that is there twice", "standingSessions: {}\nstandingSessions: {}\n", "standingSessions (2:1): the key is there twice, at 1:1 too: remove one of the two"),
		Entry("a key of an entry that is there twice", entry("cwd: /a\ncwd: /b"), "standingSessions.sessions[0].cwd (5:7): the key is there twice, at 4:7 too"),
		Entry("a key with odd characters", "\"a.b\\n\": 1\n", `"a.b\n" (1:1): "a.b\n" is not a key here`),
		Entry("a name that is a number", "standingSessions: {sessions: [{name: 7}]}\n", `standingSessions.sessions[0].name (1:38): must be a string, and is the number "7": put it in quotes`),
		Entry("a name that is empty", "standingSessions: {sessions: [{name: ''}]}\n", `standingSessions.sessions[0].name (1:38): "" cannot be a name`),
		Entry("a name that is too long", "standingSessions: {sessions: [{name: a"+strings.Repeat("b", 40)+"}]}\n", `standingSessions.sessions[0].name (1:38): "abbb`),
		Entry("a name that ends with -", "standingSessions: {sessions: [{name: a-}]}\n", `standingSessions.sessions[0].name (1:38): "a-" cannot be a name`),
		Entry("a name with a slash", "standingSessions: {sessions: [{name: ../a}]}\n", `standingSessions.sessions[0].name (1:38): "../a" cannot be a name`),
		Entry("a harness that cannot be one", entry("harness: Claude Code"), `standingSessions.sessions[0].harness (4:16): "Claude Code" cannot be the name of a harness`),
		Entry("a class that cannot be one", entry("class: -x"), `standingSessions.sessions[0].class (4:14): "-x" cannot be the name of a SessionClass`),
		Entry("harness and class", entry("harness: claude\nclass: x"), `standingSessions.sessions[0].class (5:14): harness is set too, at 4:16`),
		Entry("arguments in one text", entry("harnessArgs: --a --b"), `standingSessions.sessions[0].harnessArgs (4:20): must be a list, and is the string "--a --b"`),
		Entry("arguments that are no texts", entry("harnessArgs: [a, 1, true]"),
			`standingSessions.sessions[0].harnessArgs[1] (4:24): must be a string, and is the number "1": put it in quotes`,
			`standingSessions.sessions[0].harnessArgs[2] (4:27): must be a string, and is the boolean "true"`),
		Entry("an argument with NUL", entry(`harnessArgs: ["\0"]`), `standingSessions.sessions[0].harnessArgs[0] (4:21): an argument must not contain a NUL character`),
		Entry("an argument that is too long", entry("harnessArgs: ["+long+"]"), `standingSessions.sessions[0].harnessArgs[0] (4:21): it has 5000 characters: at most 4096`),
		Entry("too many arguments", entry("harnessArgs: ["+strings.Repeat("a,", 65)+"]"), `standingSessions.sessions[0].harnessArgs (4:20): there are 65 items: at most 64`),
		Entry("a cwd of another home", entry("cwd: ~other/x"), `standingSessions.sessions[0].cwd (4:12): "~other/x" must be an absolute path`),
		Entry("a cwd that is too long", entry("cwd: /"+long), `standingSessions.sessions[0].cwd (4:12): it has 5001 characters`),
		Entry("a promptFile that is relative", entry("promptFile: brief.md"), `standingSessions.sessions[0].promptFile (4:19): "brief.md" must be an absolute path of a file`),
		Entry("a description that is too long", entry("description: "+long), `standingSessions.sessions[0].description (4:20): it has 5000 characters: at most 1024`),
		Entry("a prompt that is too long", entry("prompt: "+strings.Repeat("é", 40000)), `standingSessions.sessions[0].prompt (4:15): it has 80000 bytes: at most 65536`),
		Entry("autoStart as a text", entry("autoStart: 'true'"), `standingSessions.sessions[0].autoStart (4:18): must be true or false, and is the string "true"`),
		Entry("autoStart as YAML 1.1 wrote it", entry("autoStart: yes"), `standingSessions.sessions[0].autoStart (4:18): must be true or false, and is the string "yes"`),
		Entry("autoStart with a tag of its own", entry("autoStart: !!bool yes"), `standingSessions.sessions[0].autoStart (4:18): must be true or false`),
		Entry("autoStart that is empty", entry("autoStart:"), `standingSessions.sessions[0].autoStart (4:17): must be true or false, and is empty`),
		Entry("slack as a boolean", entry("slack: true"), `standingSessions.sessions[0].slack (4:14): must be a mapping, and is the boolean "true"`),
		Entry("a channel that is too long", entry("slack: {channel: "+long+"}"), `standingSessions.sessions[0].slack.channel (4:24): it has 5000 characters`),
		Entry("routing that is a list", "routing: []\n", "routing (1:10): must be a mapping"),
		Entry("an unknown key of routing", "routing: {defaultharness: claude}\n", `routing.defaultharness (1:11): "defaultharness" is not a key here: did you mean "defaultHarness"? (known are defaultHarness, harnessArgs, spawnWorkdir, maxConcurrentDispatches, webTerminal)`),
		Entry("deliveries to nobody", "routing: {maxConcurrentDispatches: 0}\n", "routing.maxConcurrentDispatches (1:36): must be a whole number from 1 to 1000"),
		Entry("arguments of no harness", "routing: {harnessArgs: {'A b': []}}\n", `routing.harnessArgs."A b" (1:25): the key must be the name of a harness`),
		Entry("arguments of a harness that are no list", "routing: {harnessArgs: {claude: x}}\n", `routing.harnessArgs.claude (1:33): must be a list, and is the string "x"`),
		Entry("a working directory that is relative", "routing: {spawnWorkdir: .}\n", `routing.spawnWorkdir (1:25): "." must be an absolute path`),
	)
})
