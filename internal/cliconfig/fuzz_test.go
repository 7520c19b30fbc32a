package cliconfig

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
)

// FuzzParse: no text makes the parser panic, a refusal always says what is wrong, and
// what is accepted means the same when it is written again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: [", "{}\n---\n{}", "standingSessions: {enabled: true, sessions: [{name: a}]}",
		"standingSessions:\n  sessions:\n    - name: a\n      harnessArgs: []\n      slack: {enabled: true}\n    - name: b\n      prompt: |\n        x\n",
		"routing: {harnessArgs: {claude: ['1', ~]}, spawnWorkdir: ~}", "x: &a [*a]\nstandingSessions: *a", "standingSessions: {<<: {}}",
		"routing: {defaultHarness: claude, harnessArgs: {claude: [], custom: [\"\\0\"]}, spawnWorkdir: ~/x}\nservice: 1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			var invalid *InvalidError
			if c != nil || !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("refused without a reason: %v, %v", c, err)
			}
			return
		}
		again, err := Parse("f", rewritten(t, c))
		if err != nil {
			t.Fatalf("what was accepted is refused when it is written again: %v\n%s", err, rewritten(t, c))
		}
		c.Ignored = nil
		for _, config := range []*Config{c, again} {
			for i := range config.StandingSessions.Sessions {
				config.StandingSessions.Sessions[i].Place = Place{}
			}
			if len(config.StandingSessions.Sessions) == 0 {
				config.StandingSessions.Sessions = nil
			}
		}
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("what was written again means something else:\n%#v\n%#v", c, again)
		}
	})
}

func rewritten(t *testing.T, c *Config) []byte {
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	text, err = yaml.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
