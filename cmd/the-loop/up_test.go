package main

import (
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

var _ = Describe("how many sessions are delivered to at a time", func() {
	DescribeTable("C053: is what the flag says, else the configuration file, else eight", func(file, flag string, want int) {
		path := filepath.Join(GinkgoT().TempDir(), "c.yaml")
		Expect(os.WriteFile(path, []byte(file), 0o600)).To(Succeed())
		o := &upOptions{}
		flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
		o.flags(flags)
		args := []string{"--config", path}
		if flag != "" {
			args = append(args, flag)
		}
		Expect(flags.Parse(args)).To(Succeed())
		Expect(o.readConfig(logr.Discard())).To(Succeed())
		Expect(o.agent.Workers).To(Equal(want))
	},
		Entry(nil, "", "", 8),
		Entry(nil, "routing: {spawnWorkdir: /srv}", "", 8),
		Entry(nil, "routing: {maxConcurrentDispatches: 2}", "", 2),
		Entry(nil, "routing: {maxConcurrentDispatches: 2}", "--workers=8", 8),
		Entry(nil, "", "--workers=1", 1),
	)
})
