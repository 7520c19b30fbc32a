package workspace

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzComponents proves that what is accepted as a repository is three parts of a path
// below the root, whatever it is made of, and one URL without credentials.
func FuzzComponents(f *testing.F) {
	for _, s := range [][3]string{{"github.com", "octo", "repo"}, {"ghe:8443", "o", "r"}, {"", "..", "."}, {"a_b", "-x", ".git"}, {"a..b", "o\n", "r/"}} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, host, owner, repo string) {
		r, err := Repository{Host: host, Owner: owner, Repo: repo}.normalised()
		if err != nil {
			if ReasonOf(err) != ReasonInvalidRequest {
				t.Fatalf("%v", err)
			}
			return
		}
		dir := r.dir()
		parts := strings.Split(dir, "/")
		if !filepath.IsLocal(dir) || filepath.Clean(dir) != dir || len(parts) != 3 {
			t.Fatalf("%q is the path %q", []string{host, owner, repo}, dir)
		}
		for _, part := range parts {
			if strings.HasPrefix(part, ".") || strings.HasPrefix(part, "-") || len(part) > maxComponent {
				t.Fatalf("%q is the path %q", []string{host, owner, repo}, dir)
			}
		}
		if repositoryAt(dir) != r {
			t.Fatalf("%q is the path of %v and of %v", dir, r, repositoryAt(dir))
		}
		for _, p := range []Protocol{HTTPS, SSH} {
			url := r.url(p)
			if strings.ContainsAny(url, " \t\n\r\x00'\"\\") || strings.HasPrefix(url, "-") || strings.Count(url, "@") > 1 || redact(url) != url {
				t.Fatalf("%v has the URL %q", r, url)
			}
		}
	})
}

// FuzzRefName proves that git accepts every name that is accepted here, and that none is
// an option, a range or a refspec.
func FuzzRefName(f *testing.F) {
	for _, s := range []string{"main", "a/b", "-x", "a..b", "a:b", "a@{1}", "@", "HEAD", "ü", "a.lock", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !refName(s) {
			return
		}
		if strings.HasPrefix(s, "-") || strings.ContainsAny(s, ":*^~? \n\x00") || strings.Contains(s, "..") {
			t.Fatalf("%q is accepted", s)
		}
		if out, err := exec.Command("git", "check-ref-format", "--branch", s).CombinedOutput(); err != nil {
			t.Fatalf("git does not accept %q: %v %s", s, err, out)
		}
	})
}

// FuzzMessage proves that a message of git's is one short line without credentials.
func FuzzMessage(f *testing.F) {
	f.Add("fatal: unable to access 'https://a:b@host/x'\nhint", "user:secret")
	f.Add("remote: \x1b[31mno\n\nfatal: x", "t")
	f.Fuzz(func(t *testing.T, said, secret string) {
		if strings.ContainsAny(secret, "/ \t\r\n\"'@\\") || len(secret) < 8 || strings.Contains(said, secret) {
			return
		}
		out := message(said + "\nfatal: see https://" + secret + "@github.com/octo/repo\n")
		if strings.ContainsAny(out, "\n\r\x1b\x00") || len(out) > maxMessage+3 || strings.Contains(out, secret) {
			t.Fatalf("%q", out)
		}
	})
}
