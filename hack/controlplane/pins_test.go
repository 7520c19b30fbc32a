package main

import (
	"strings"
	"testing"
)

const testMod = `// a comment
module github.com/theloop-dev/the-loop/hack/controlplane

go 1.26.0

require (
	go.etcd.io/etcd/server/v3 v3.7.3
	k8s.io/kubernetes v1.37.2 // why this one
)

require golang.org/x/net v0.1.0 // indirect

replace k8s.io/api => k8s.io/api v0.37.2
`

const testSum = `k8s.io/kubernetes v1.37.2 h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE=
k8s.io/kubernetes v1.37.2/go.mod h1:AAAAEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE=
`

func testPins(t *testing.T) pins {
	t.Helper()
	p, err := parsePins(testMod, testSum)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePins(t *testing.T) {
	for _, tc := range []struct {
		name, mod, sum string
		k8s, etcd      string
		wantErr        string
	}{
		{name: "blocks", mod: testMod, sum: testSum, k8s: "v1.37.2", etcd: "v3.7.3"},
		{
			name: "single lines",
			mod: "module " + selfModule + "\ngo 1.26.0\nrequire k8s.io/kubernetes v1.38.0-rc.1\n" +
				"require go.etcd.io/etcd/server/v3 v3.8.0 // indirect\n",
			sum: "k8s.io/kubernetes v1.38.0-rc.1 h1:AAAA\n", k8s: "v1.38.0-rc.1", etcd: "v3.8.0",
		},
		{name: "another module", mod: "module example.com/x\ngo 1.26.0\n", wantErr: "go run -C hack/controlplane"},
		{name: "empty", wantErr: "go run -C hack/controlplane"},
		{name: "no kubernetes", mod: strings.Replace(testMod, "k8s.io/kubernetes", "k8s.io/other", 1), sum: testSum, wantErr: "k8s.io/kubernetes"},
		{name: "no etcd", mod: strings.Replace(testMod, "go.etcd.io/etcd/server/v3", "x.org/y", 1), sum: testSum, wantErr: "go.etcd.io/etcd"},
		{name: "a version that is a path", mod: strings.Replace(testMod, "v1.37.2", "v1.37.2/../../x", 1), sum: testSum, wantErr: "usable version"},
		{name: "only in a comment", mod: strings.Replace(testMod, "\tk8s.io", "\t// k8s.io", 1), sum: testSum, wantErr: "usable version"},
		{name: "no checksum", mod: testMod, sum: "", wantErr: "go mod tidy"},
		{name: "only the go.mod's checksum", mod: testMod, sum: strings.SplitAfter(testSum, "\n")[1], wantErr: "go mod tidy"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := parsePins(tc.mod, tc.sum)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.k8s != tc.k8s || p.etcd != tc.etcd || p.goVersion != "1.26.0" {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestReadPinsOfThisModule(t *testing.T) {
	p, err := readPins(".")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(p.k8s, "v1.") || !strings.HasPrefix(p.etcd, "v3.") {
		t.Errorf("got %+v", p)
	}
}

func TestReadPinsElsewhere(t *testing.T) {
	_, err := readPins(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "go run -C hack/controlplane") {
		t.Errorf("got %v", err)
	}
}

func TestModHashIgnoresLayoutOnly(t *testing.T) {
	base := testPins(t).modHash
	same, err := parsePins(strings.ReplaceAll(testMod, "// why this one", "//  because")+"\n\n// more\n", testSum)
	if err != nil || same.modHash != base {
		t.Errorf("a comment changed the hash (%v)", err)
	}
	other, err := parsePins(strings.Replace(testMod, "x/net v0.1.0", "x/net v0.1.1", 1), testSum)
	if err != nil || other.modHash == base {
		t.Errorf("another dependency did not change the hash (%v)", err)
	}
}

func TestTargets(t *testing.T) {
	p := testPins(t)
	var names []string
	for _, tg := range p.targets(true) {
		names = append(names, tg.name+"="+tg.pkg+"@"+tg.version)
	}
	want := "etcd=go.etcd.io/etcd/server/v3@v3.7.3 kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver@v1.37.2 " +
		"kubectl=k8s.io/kubernetes/cmd/kubectl@v1.37.2"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := len(p.targets(false)); n != 2 {
		t.Errorf("got %d targets without kubectl", n)
	}
}

func TestLdflags(t *testing.T) {
	p := testPins(t)
	ts := p.targets(true)
	if got := p.ldflags(ts[0], "2026-10-27T12:01:04Z"); got != "-s -w" {
		t.Errorf("etcd: got %q", got)
	}
	got := p.ldflags(ts[1], "2026-10-27T12:01:04Z")
	for _, want := range []string{
		"-s -w ",
		"-X=k8s.io/component-base/version.gitVersion=v1.37.2 ",
		"-X=k8s.io/component-base/version.gitMajor=1 ",
		"-X=k8s.io/component-base/version.gitMinor=37 ",
		"-X=k8s.io/component-base/version.gitTreeState=archive ",
		"-X=k8s.io/component-base/version.gitCommit=h1-03654312239bce462a1532a14ac9f46446f44652c45e91d68fdde08b61ea1301 ",
		"-X=k8s.io/component-base/version.buildDate=2026-10-27T12:01:04Z",
		"-X=k8s.io/client-go/pkg/version.gitVersion=v1.37.2 ",
	} {
		if !strings.Contains(got+" ", want) {
			t.Errorf("missing %q in %q", want, got)
		}
	}
}
