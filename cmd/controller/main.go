// Command controller binds sessions to hosts, judges whether hosts are alive and
// summarises every session.
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

	"github.com/theloop-dev/the-loop/controllers/hub"
)

var version = "dev"

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := hub.Options{Version: version}
	kubeContext := ""
	cmd := &cobra.Command{
		Use: "controller", Short: "Bind sessions to hosts and summarise them", Version: version,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Log = zap.New(zap.StacktraceLevel(zapcore.PanicLevel))
			ctrl.SetLogger(o.Log)
			klog.SetLogger(o.Log)
			cfg, err := config.GetConfigWithContext(kubeContext)
			if err != nil {
				return fmt.Errorf("no cluster: %w; give one with KUBECONFIG", err)
			}
			return hub.Run(cmd.Context(), cfg, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&kubeContext, "context", "", "context of the kubeconfig (file: $KUBECONFIG)")
	f.BoolVar(&o.LeaderElection, "leader-elect", true, "let one of several replicas work")
	f.StringVar(&o.MetricsAddress, "metrics-address", "0", "address of the metrics, 0 for none")
	f.StringVar(&o.HealthAddress, "health-address", "", "address of /healthz and /readyz, empty for none")
	return cmd
}
