// Package devcluster starts and stops a Kubernetes control plane on this
// machine: one etcd and one kube-apiserver, for `the-loop up` and for
// end-to-end tests. It runs the binaries that hack/controlplane builds.
//
// # What lives in the directory
//
//	lock            held (flock) by the process that runs the control plane
//	ports.json      the two ports, kept so that kubeconfigs stay valid
//	kubeconfig      admin access, mode 0600, certificates embedded
//	pki/            two certificate authorities and what they signed, 0600
//	etcd/           the data
//	logs/           etcd.log, kube-apiserver.log and of each the previous one
//	run/            which processes run, for cleaning up after a crash
//
// All of it survives Stop: the next Start on the directory serves the same
// objects on the same address to the same kubeconfigs.
//
// # Who can reach it
//
// Both servers listen on 127.0.0.1 only and ask for client certificates. The
// API server does not answer anonymous requests. etcd trusts an authority of its
// own, so that a certificate for a user of the API does not open etcd.
//
// # What is missing from a real cluster
//
// There is no controller-manager, no scheduler and no kubelet. Hence:
//
//   - Owner references are not collected: an object outlives its owner.
//   - A deleted namespace stays Terminating for ever; delete what is in it instead.
//   - ServiceAccounts get no token Secrets, and a new namespace no "default"
//     ServiceAccount; tokens by TokenRequest (kubectl create token) work. The
//     ServiceAccount admission plugin is off, since it would refuse every pod.
//   - Pods are stored and never run; Services get addresses that lead nowhere.
//   - ClusterRoles with an aggregationRule stay empty (edit, view and admin among
//     them); all other RBAC works.
//   - Custom resources, validation, admission webhooks and policies, server-side
//     apply, watches and Leases are the API server's own and work in full.
//
// # How the children end
//
// Stop ends the API server first, then etcd. Ctrl-C in a terminal does not reach
// them (they are in process groups of their own), and they do not outlive this
// process, however it ends. Should they do so after all (another kernel, a
// debugger), Processes finds them and the next Start ends them: by process id,
// start time and executable together, never by a process id alone.
package devcluster
