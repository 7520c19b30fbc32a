// Command agent makes tmux on one build host match the session objects that are bound
// to it, and delivers their messages.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/theloop-dev/the-loop/controllers/agent"
)

var version = "dev"

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := agent.Options{Version: version}
	kubeContext := ""
	cmd := &cobra.Command{
		Use: "agent", Short: "Make tmux on this host match the session objects bound to it", Version: version,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = zap.New(zap.StacktraceLevel(zapcore.PanicLevel))
			ctrl.SetLogger(o.Log)
			klog.SetLogger(o.Log)
			cfg, err := config.GetConfigWithContext(kubeContext)
			if err != nil {
				return fmt.Errorf("no cluster: %w; give one with KUBECONFIG", err)
			}
			return agent.Run(cmd.Context(), cfg, o)
		},
	}
	f := cmd.Flags()
	o.Flags(f)
	f.StringVar(&kubeContext, "context", "", "context of the kubeconfig (file: $KUBECONFIG)")
	f.StringVar(&o.Dir, "state-dir", "/var/lib/the-loop/agent", "the agent's own directory, absolute")
	f.StringVar(&o.MetricsAddress, "metrics-address", "0", "address of the metrics, 0 for none")
	f.StringVar(&o.OTLPEndpoint, "otlp-endpoint", "", "URL of an OTLP receiver, such as http://127.0.0.1:4318, that gets a trace of every delivery, empty for none")
	f.StringVar(&o.HealthAddress, "health-address", "", "address of /healthz and /readyz, empty for none")
	return cmd
}
