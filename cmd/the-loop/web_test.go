package main

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cliconfig"
	"github.com/theloop-dev/the-loop/internal/webterminal"
)

var _ = Describe("the web terminal's settings", func() {
	settings := func(file cliconfig.WebTerminal, given map[string]bool, flags webterminal.Options) (webterminal.Options, error) {
		o := &upOptions{file: &cliconfig.Config{Routing: cliconfig.Routing{WebTerminal: file}}, given: func(flag string) bool { return given[flag] }}
		o.agent.WebTerminal = flags
		err := o.webTerminal()
		return o.agent.WebTerminal, err
	}
	file := cliconfig.WebTerminal{Enabled: new(true), Provider: "ttyd", Host: "::1", Port: new(1), Exposed: new(true), AllowedHosts: []string{"a"},
		Writable: new(true), IdleSeconds: new(5), MaxClients: new(2)}
	flags := webterminal.Options{Provider: "builtin", Host: "127.0.0.1", Port: 7681, Idle: time.Hour, MaxClients: 16}

	It("are those of the file, where no flag says otherwise", func() {
		o, err := settings(file, nil, flags)
		Expect(err).NotTo(HaveOccurred())
		Expect(o).To(Equal(webterminal.Options{Enabled: true, Provider: "ttyd", Host: "::1", Port: 1, Exposed: true, AllowedHosts: []string{"a"},
			Writable: true, Idle: 5 * time.Second, MaxClients: 2}))
		o, err = settings(cliconfig.WebTerminal{}, nil, flags)
		Expect(err).NotTo(HaveOccurred())
		Expect(o).To(Equal(flags))
	})

	It("are those of the flags that a person gave", func() {
		all := map[string]bool{}
		for _, name := range []string{"", "-provider", "-host", "-port", "-exposed", "-allowed-hosts", "-writable", "-idle", "-max-clients"} {
			all["web-terminal"+name] = true
		}
		o, err := settings(file, all, flags)
		Expect(err).NotTo(HaveOccurred())
		Expect(o).To(Equal(flags))
	})

	It("are refused together, too", func() {
		_, err := settings(cliconfig.WebTerminal{Host: "0.0.0.0"}, nil, flags)
		Expect(err).To(MatchError(ContainSubstring("webTerminal.exposed: true")))
	})
})

var _ = Describe("a link to the web terminal", func() {
	session := &api.WorkItemSession{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "github-octo-repo-15"}}

	It("is made from the state directory of up, or that of an agent", func() {
		dir := GinkgoT().TempDir()
		_, err := webLink(dir, session)
		Expect(err).To(MatchError(ContainSubstring("no web terminal is served from the state directory " + dir)))
		Expect(exitCode(err)).To(Equal(exitRefused))
		agent := filepath.Join(dir, "agent")
		web := webterminal.Dir(agent)
		Expect(os.MkdirAll(web, 0o700)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(web, "url"), []byte("http://127.0.0.1:7681/\n"), 0o600)).To(Succeed())
		_, err = webLink(dir, session)
		Expect(err).To(MatchError(ContainSubstring("the web terminal's token cannot be read")))
		token := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		Expect(os.WriteFile(filepath.Join(web, "token"), []byte(token), 0o600)).To(Succeed())
		for _, d := range []string{dir, agent} {
			link, err := webLink(d, session)
			Expect(err).NotTo(HaveOccurred())
			Expect(link).To(HavePrefix("http://127.0.0.1:7681/login?next=%2Fsessions%2Fworkitemsession%2Fteam-a%2Fgithub-octo-repo-15#t1."))
			Expect(link).NotTo(ContainSubstring(token))
		}
	})
})
