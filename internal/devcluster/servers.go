package devcluster

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/theloop-dev/the-loop/internal/durable"
)

// Names of the binaries, the logs and the processes.
const (
	etcdName      = "etcd"
	apiserverName = "kube-apiserver"
)

// etcdProgram runs etcd for one member. Its peer address is a socket in its own
// directory: there are no peers, and a port less can be taken.
func etcdProgram(d layout, o Options, p *pki, ports ports) program {
	const peer = "unix://peer:0" // relative to the working directory, as sockets' paths are short
	client := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.Etcd))
	args := []string{
		"--name=" + contextName,
		"--data-dir=" + filepath.Join(d.etcd(), "data"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + contextName + "=" + peer,
		"--client-cert-auth=true",
		"--trusted-ca-file=" + d.pki("etcd-ca.crt"),
		"--cert-file=" + d.pki(p.etcdFile+".crt"),
		"--key-file=" + d.pki(p.etcdFile+".key"),
		"--enable-grpc-gateway=false",
		// The API server compacts what is older than five minutes. This is for
		// the time when it is down, and never earlier than it would be.
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=15m",
		"--log-level=info",
		"--log-outputs=stderr",
		"--logger=zap",
	}
	if o.NoFsync {
		args = append(args, "--unsafe-no-fsync=true")
	}
	return program{name: etcdName, path: resolveExe(filepath.Join(o.BinDir, etcdName)), args: args, dir: d.etcd()}
}

// apiserverProgram runs the API server on etcd.
func apiserverProgram(d layout, o Options, p *pki, ports ports) program {
	args := []string{
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(ports.APIServer),
		// Without it the server looks for a routed interface and fails offline.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + d.run(""),
		"--tls-cert-file=" + d.pki(p.apiserverFile+".crt"),
		"--tls-private-key-file=" + d.pki(p.apiserverFile+".key"),
		"--client-ca-file=" + d.pki("ca.crt"),
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--etcd-servers=https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.Etcd)),
		"--etcd-cafile=" + d.pki("etcd-ca.crt"),
		"--etcd-certfile=" + d.pki(p.etcdClientFile+".crt"),
		"--etcd-keyfile=" + d.pki(p.etcdClientFile+".key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + d.pki(serviceAccountKey),
		"--service-account-signing-key-file=" + d.pki(serviceAccountKey),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--allow-privileged=true",
		"--disable-admission-plugins=ServiceAccount",
		"--profiling=false",
		// One person's few clients need no fair shares of it. Keeping them takes a third of what
		// an idle server needs: 3.2 % of a core with it, 2.0 % without. The limits of what is
		// handled at a time stay (--max-requests-inflight).
		"--enable-priority-and-fairness=false",
		// By default the server waits a minute for open watches to go away.
		"--shutdown-watch-termination-grace-period=500ms",
	}
	if o.RequestLog != "" {
		args = append(args,
			"--audit-policy-file="+d.auditPolicy(),
			"--audit-log-path="+o.RequestLog,
			"--audit-log-mode=blocking",
			"--audit-log-format=json",
			"--audit-log-maxsize=0",
		)
	}
	args = append(args, o.ExtraAPIServerArgs...)
	return program{name: apiserverName, path: resolveExe(filepath.Join(o.BinDir, apiserverName)), args: args, dir: d.run("")}
}

// auditPolicy logs who did what to which object, once per request.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
`

// writeAuditPolicy writes the policy when there is a request log.
func writeAuditPolicy(d layout, o Options) error {
	if o.RequestLog == "" {
		return nil
	}
	if err := durable.Write(d.auditPolicy(), []byte(auditPolicy)); err != nil {
		return d.explain(fmt.Errorf("the audit policy: %w", err))
	}
	return nil
}
