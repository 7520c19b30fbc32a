package workitem_test

import (
	"strings"
	"testing"

	"github.com/theloop-dev/the-loop/internal/workitem"
)

// FuzzParse: what Parse accepts is written and read back as the same ref, New
// agrees with Parse, and every name derived from it has its form.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"github:octo/repo#15", "github:github.com/o/r#1", "github:ghe.corp:8443/o/r#1", "github:ghe:8443/o/r#1",
		"github:octo/repo/sub#15", "standing:x", "standing-x:o/r#1", " jira:a b/c\nd#007 ", "github:o/r#0", "github:o/..#1",
		"github:o/r#99999999999999999999", "a-:-/-#1", "github:日本/語#1", "github:o/\xff#1",
		"github:octo/foo-bar-1#1234567890", "github:" + strings.Repeat("x", 300) + "/y#1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := workitem.Parse(s)
		if err != nil {
			if r != (workitem.Ref{}) || !strings.Contains(err.Error(), workitem.Form) {
				t.Fatalf("Parse(%q) = %+v, %v", s, r, err)
			}
			return
		}
		again, err := workitem.Parse(r.String())
		if err != nil || again != r {
			t.Fatalf("Parse(%q) = %+v, written %q, read back %+v, %v", s, r, r.String(), again, err)
		}
		made, err := workitem.New(r.Provider, r.Host, r.Owner, r.Repo, r.Number)
		if err != nil || made != r {
			t.Fatalf("New of %+v = %+v, %v", r, made, err)
		}
		checkNames(t, r)
	})
}

// FuzzNames: the names of any two refs have their form, and two different refs
// have different object names.
func FuzzNames(f *testing.F) {
	f.Add("github", "", "octo", "foo-bar", int64(1), "github", "", "octo-foo", "bar", int64(1))
	f.Add("github", "", "octo", "foo.js", int64(15), "github", "", "octo", "foo_js", int64(15))
	f.Add("github", "", "Octo", "Repo", int64(1), "github", "", "octo", "repo", int64(1))
	f.Add("github", "a.b", "c", "d", int64(1), "github", "", "a.b-c", "d", int64(1))
	f.Add("github", "github.com", "o", "r", int64(1), "github", "", "o", "r", int64(1))
	f.Add("github", "", "Octo", "repo", int64(1), "github", "", "octo", "repo-1", int64(1234567890))
	f.Add("standing", "", "x", "y", int64(1), "standing-x", "", "y", "z", int64(1))
	f.Add("", "", "", "", int64(0), "\xff", "\xff", "\xff", "/#", int64(-1<<63))
	f.Add("github", "", "o", strings.Repeat("r", 52), int64(1), "github", "", "o", strings.Repeat("r", 53), int64(1))
	f.Fuzz(func(t *testing.T, p1, h1, o1, r1 string, n1 int64, p2, h2, o2, r2 string, n2 int64) {
		// Fields that were never checked must still give names that are safe to use.
		checkForms(t, workitem.Ref{Provider: p1, Host: h1, Owner: o1, Repo: r1, Number: n1})
		a, errA := workitem.New(p1, h1, o1, r1, n1)
		b, errB := workitem.New(p2, h2, o2, r2, n2)
		if errA != nil || errB != nil {
			return
		}
		checkNames(t, a)
		checkNames(t, b)
		if same := a == b; same != (a.ObjectName() == b.ObjectName()) || same != (a.String() == b.String()) {
			t.Fatalf("%+v and %+v: names %s and %s", a, b, a.ObjectName(), b.ObjectName())
		}
		if a.DisambiguatedTmuxName() == b.TmuxName() || b.DisambiguatedTmuxName() == a.TmuxName() {
			t.Fatalf("%s and %s: a disambiguated name is the other's plain one", a, b)
		}
		if n := workitem.PullRequestObjectName(a, b); n == a.ObjectName() || n == b.ObjectName() {
			t.Fatalf("%s is a work item's own name", n)
		}
	})
}

// FuzzStandingName: what is accepted is a safe tmux name, and only accepted when
// every character and the length are allowed.
func FuzzStandingName(f *testing.F) {
	for _, s := range []string{"supervisor", "supervisor\n", "-a", "a-", "", "A", "é", strings.Repeat("a", 41)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := len(s) >= 1 && len(s) <= 40 && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
		if got := workitem.StandingName(s) == nil; got != want {
			t.Fatalf("StandingName(%q) accepted: %v", s, got)
		}
		if target := workitem.StandingTmuxName(s); want && (!tmuxForm.MatchString(target) || !workitem.OursTarget(target)) {
			t.Fatalf("standing target %q", target)
		}
	})
}

// FuzzMessageName: a label for all inputs, equal exactly for an equal pair.
func FuzzMessageName(f *testing.F) {
	f.Add("supervisor", "ab", "c", "a", "bc")
	f.Add("a-", "", "ab", "ab", "")
	f.Add("\xff", "1:a", "", "1", ":a")
	f.Fuzz(func(t *testing.T, session, k1, u1, k2, u2 string) {
		a, b := workitem.MessageName(session, k1, u1), workitem.MessageName(session, k2, u2)
		if !labelForm.MatchString(a) {
			t.Fatalf("%q is no label", a)
		}
		if (a == b) != (k1 == k2 && u1 == u2) {
			t.Fatalf("(%q,%q) and (%q,%q): %s and %s", k1, u1, k2, u2, a, b)
		}
	})
}

// checkForms holds for every Ref, valid or not.
func checkForms(t *testing.T, r workitem.Ref) {
	t.Helper()
	for _, name := range []string{r.TmuxName(), r.DisambiguatedTmuxName()} {
		if !tmuxForm.MatchString(name) || !workitem.OursTarget(name) || workitem.NormalizeTarget(name) != name || name == anchor {
			t.Fatalf("%+v: tmux name %q", r, name)
		}
	}
	for _, name := range []string{r.ObjectName(), workitem.PullRequestObjectName(r, r)} {
		if !labelForm.MatchString(name) {
			t.Fatalf("%+v: object name %q", r, name)
		}
	}
	if slug := r.Slug(); !slugForm.MatchString(slug) {
		t.Fatalf("%+v: slug %q", r, slug)
	}
	if url := r.URL(); strings.ContainsAny(url, " \t\r\n?#%\x00") || strings.Contains(url, "/../") {
		t.Fatalf("%+v: URL %q", r, url)
	}
}

// checkNames holds for every valid Ref: the forms, and that its session is never
// taken for a standing one (whatever the standing session is called).
func checkNames(t *testing.T, r workitem.Ref) {
	t.Helper()
	checkForms(t, r)
	for _, name := range []string{r.TmuxName(), r.DisambiguatedTmuxName()} {
		if strings.HasPrefix(name, workitem.StandingTmuxName("")) {
			t.Fatalf("%+v: %q can be a standing session's", r, name)
		}
	}
}
