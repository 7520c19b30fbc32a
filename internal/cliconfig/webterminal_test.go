package cliconfig

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the block of the web terminal", func() {
	It("is read whole, and what it leaves out is left out", func() {
		Expect(parsed("routing: {webTerminal: {}}").Routing.WebTerminal).To(Equal(WebTerminal{}))
		c := parsed(`
routing:
  webTerminal:
    enabled: true
    provider: ttyd
    host: 192.0.2.1
    port: 0
    exposed: true
    allowedHosts: [term.example.org, "build7:7681", "[::1]:7681"]
    writable: false
    idleSeconds: 60
    maxClients: 2
`)
		Expect(c.Ignored).To(BeEmpty())
		Expect(c.Routing.WebTerminal).To(Equal(WebTerminal{
			Enabled: new(true), Provider: "ttyd", Host: "192.0.2.1", Port: new(0), Exposed: new(true),
			AllowedHosts: []string{"term.example.org", "build7:7681", "[::1]:7681"}, Writable: new(false), IdleSeconds: new(60), MaxClients: new(2),
		}))
	})

	DescribeTable("is refused with its place and the form that is allowed", func(block, want string) {
		Expect(lines("routing: {webTerminal: " + block + "}\n")).To(ConsistOf(ContainSubstring(want)))
	},
		Entry("a text", "yes please", "routing.webTerminal (1:24): must be a mapping"),
		Entry("an unknown key", "{bind: 1}", "(known are enabled, provider, host, port, exposed, allowedHosts, writable, idleSeconds, maxClients)"),
		Entry("enabled by a text", "{enabled: 'true'}", "routing.webTerminal.enabled (1:34): must be true or false"),
		Entry("another provider", "{provider: gotty}", `"gotty" is no provider: choose builtin or ttyd`),
		Entry("a name to listen on", "{host: example.org}", "give an IP address such as 127.0.0.1, or localhost"),
		Entry("an address with a zone", "{host: 'fe80::1%eth0'}", "give an IP address such as 127.0.0.1, or localhost"),
		Entry("a port that is none", "{port: 65536}", "must be a whole number from 0 to 65535"),
		Entry("a port in words", "{port: http}", "must be a whole number from 0 to 65535"),
		Entry("a port and a half", "{port: 7681.5}", "must be a whole number from 0 to 65535"),
		Entry("a URL as a name", "{allowedHosts: ['https://x.org']}", "routing.webTerminal.allowedHosts[0] (1:40): \"https://x.org\" is no host"),
		Entry("no time", "{idleSeconds: 0}", "must be a whole number from 1 to 604800"),
		Entry("nobody", "{maxClients: 0}", "must be a whole number from 1 to 1000"),
	)
})
