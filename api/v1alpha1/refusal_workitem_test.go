package v1alpha1_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

const (
	providerForm = "provider must match ^[a-z][a-z0-9-]*$, such as github, and must not be 'standing' nor start with 'standing-'"
	hostForm     = "host must be a dotted name such as ghe.example.com, with :port if needed, or name:port; leave it out for github.com"
	ownerForm    = "owner must match ^[A-Za-z0-9._-]+$ and must not be '.' or '..'"
	repoForm     = "repo must match ^[A-Za-z0-9._-]+$ and must not be '.' or '..'"
	gateForm     = "a start gate's name must be lower-case letters, digits and '-', starting and ending with a letter or digit"
	pullForm     = "spec.pullRequest and spec.parentName go together"
	refForm      = "workspace.ref must be a plain branch, tag or commit name: it must match ^[A-Za-z0-9][A-Za-z0-9._/-]*$ and not contain '..'"
	idForm       = "conversation.id must match ^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

	aPull = `parentName: item, pullRequest: {owner: octo, repo: other, number: 3}`
)

var _ = Describe("a WorkItemSession", func() {
	bad := refused("WorkItemSession")

	DescribeTable("is accepted with", accepted("WorkItemSession"), placementAccepted(),
		yes("a GitHub Enterprise host", `spec: {workItem: {host: ghe.corp.example}}`),
		yes("C005 a host with a port", `spec: {workItem: {host: "ghe.corp.example:8443"}}`),
		yes("a bare host with a port", `spec: {workItem: {host: "ghe:8443"}}`),
		yes("another provider", `spec: {workItem: {provider: jira}}`),
		yes("a repository with dots", `spec: {workItem: {repo: foo.js}}`),
		yes("a repository of the forge's own", `spec: {workItem: {repo: .github}}`),
		yes("a pull request in another repository", `spec: {`+aPull+`}`),
		yes("a pull request in the same one", `spec: {parentName: item, pullRequest: {owner: octo, repo: repo, number: 16}}`),
		yes("a pull request of the same number in another one", `spec: {parentName: item, pullRequest: {owner: octo, repo: other, number: 15}}`),
		yes("a branch", `spec: {workspace: {ref: feature/a_b-1.2}}`),
		yes("no ref of its own", `spec: {workspace: {}}`),
		yes("a conversation that exists", `spec: {conversation: {id: 0b6b1f0e-2b1c-4bd3-9a5e-111111111111, workingDirectory: "/srv/a b"}}`),
		yes("start gates", `spec: {startGates: [{name: phase-selection}, {name: a}, {name: "1"}]}`),
		yes("the state CleanedUp", `spec: {state: CleanedUp}`),
		yes("the restart policy Never", `spec: {restartPolicy: Never}`),
	)

	DescribeTable("is refused with", bad, placementRefusals(),
		no("no work item", `spec: {workItem: null}`, "spec.workItem: Required value"),
		no("no provider", `spec: {workItem: {provider: null}}`, "spec.workItem.provider: Required value"),
		no("C008 the provider standing", `spec: {workItem: {provider: standing}}`, providerForm),
		no("C008 a provider whose terminal could be taken for a standing session's", `spec: {workItem: {provider: standing-x}}`, providerForm),
		no("an empty provider", `spec: {workItem: {provider: ""}}`, providerForm),
		no("a provider in upper case", `spec: {workItem: {provider: GitHub}}`, providerForm),
		no("a provider with a newline", `spec: {workItem: {provider: "github\n"}}`, providerForm),
		no("N07 a provider that starts with a dash", `spec: {workItem: {provider: "-github"}}`, providerForm),
		no("a provider of 33 characters", `spec: {workItem: {provider: `+repeat("p", 33)+`}}`, "spec.workItem.provider: Too long: may not be more than 32"),

		no("C004 the default host written out", `spec: {workItem: {host: github.com}}`, hostForm),
		no("an empty host", `spec: {workItem: {host: ""}}`, hostForm),
		no("C003 a host that is no host", `spec: {workItem: {host: octo}}`, hostForm),
		no("a URL as host", `spec: {workItem: {host: "https://ghe.example.com"}}`, hostForm),
		no("a path as host", `spec: {workItem: {host: "ghe.example.com/octo"}}`, hostForm),
		no("a user in front of the host", `spec: {workItem: {host: "git@ghe.example.com"}}`, hostForm),
		no("a host with a newline", `spec: {workItem: {host: "ghe.example.com\n"}}`, hostForm),

		no("no owner", `spec: {workItem: {owner: null}}`, "spec.workItem.owner: Required value"),
		no("an empty owner", `spec: {workItem: {owner: ""}}`, ownerForm),
		no("an owner with a blank", `spec: {workItem: {owner: "oc to"}}`, ownerForm),
		no("C143 the owner ..", `spec: {workItem: {owner: ".."}}`, ownerForm),
		no("a repo with a slash", `spec: {workItem: {repo: a/b}}`, repoForm),
		no("a repo with a query", `spec: {workItem: {repo: "a?b"}}`, repoForm),
		no("C143 the repo .", `spec: {workItem: {repo: "."}}`, repoForm),
		no("C143 the repo ..", `spec: {workItem: {repo: ".."}}`, repoForm),
		no("a repo with a newline", `spec: {workItem: {repo: "a\n"}}`, repoForm),
		no("no number", `spec: {workItem: {number: null}}`, "spec.workItem.number: Required value"),
		no("the number 0", `spec: {workItem: {number: 0}}`, "spec.workItem.number", "greater than or equal to 1"),
		no("a negative number", `spec: {workItem: {number: -15}}`, "spec.workItem.number", "greater than or equal to 1"),
		no("a number in quotes", `spec: {workItem: {number: "15"}}`, "spec.workItem.number", "must be of type integer"),
		no("half a number", `spec: {workItem: {number: 1.5}}`, "spec.workItem.number", "must be of type integer"),

		no("a pull request without its parent", `spec: {pullRequest: {owner: octo, repo: other, number: 3}}`, pullForm),
		no("a parent without a pull request", `spec: {parentName: item}`, pullForm),
		no("an empty parent", `spec: {`+aPull+`, parentName: ""}`, "spec.parentName", "at least 1 chars long"),
		no("a parent that cannot be one", `spec: {pullRequest: {owner: octo, repo: other, number: 3}, parentName: Item}`, "parentName must be the name of a WorkItemSession: "+anyName),
		no("a parent of 64 characters", `spec: {pullRequest: {owner: octo, repo: other, number: 3}, parentName: `+repeat("n", 64)+`}`, "spec.parentName: Too long: may not be more than 63"),
		no("itself as parent", `{metadata: {name: item}, spec: {`+aPull+`}}`, "spec.parentName must name another session"),
		no("a pull request that is the work item", `spec: {parentName: item, pullRequest: {owner: octo, repo: repo, number: 15}}`, "spec.pullRequest must be another one than spec.workItem"),
		no("a pull request with the number 0", `spec: {parentName: item, pullRequest: {owner: octo, repo: other, number: 0}}`, "spec.pullRequest.number", "greater than or equal to 1"),
		no("a pull request of a bad owner", `spec: {parentName: item, pullRequest: {owner: "o#o", repo: other, number: 3}}`, ownerForm),
		no("a pull request of a bad repo", `spec: {parentName: item, pullRequest: {owner: octo, repo: "..", number: 3}}`, repoForm),

		no("an unknown state", `spec: {state: Paused}`, `supported values: "Running", "Stopped", "CleanedUp"`),
		no("an unknown restart policy", `spec: {restartPolicy: Sometimes}`, `supported values: "OnMessage", "Always", "Never"`),
		no("an empty start gate", `spec: {startGates: [{name: ""}]}`, gateForm),
		no("a start gate without a name", `spec: {startGates: [{}]}`, "spec.startGates[0].name: Required value"),
		no("a start gate in upper case", `spec: {startGates: [{name: Phase}]}`, gateForm),
		no("a start gate with a leading dash", `spec: {startGates: [{name: "-a"}]}`, gateForm),
		no("a start gate with a trailing dash", `spec: {startGates: [{name: "a-"}]}`, gateForm),
		no("a start gate with a dot", `spec: {startGates: [{name: a.b}]}`, gateForm),
		no("a start gate with a newline", `spec: {startGates: [{name: "a\n"}]}`, gateForm),
		no("a start gate of 64 characters", `spec: {startGates: [{name: `+repeat("g", 64)+`}]}`, "spec.startGates[0].name: Too long: may not be more than 63"),
		no("a start gate twice", `spec: {startGates: [{name: a}, {name: a}]}`, `spec.startGates[1]: Duplicate value`),
		no("17 start gates", `spec: {startGates: [`+gates(17)+`]}`, "spec.startGates: Too many: 17: must have at most 16 items"),

		no("a ref that starts with a dash", `spec: {workspace: {ref: "--upload-pack=x"}}`, refForm),
		no("a range as ref", `spec: {workspace: {ref: a..b}}`, refForm),
		no("a refspec as ref", `spec: {workspace: {ref: "a:b"}}`, refForm),
		no("an empty ref", `spec: {workspace: {ref: ""}}`, refForm),
		no("a ref with a newline", `spec: {workspace: {ref: "main\n"}}`, refForm),

		no("a conversation without an id", `spec: {conversation: {workingDirectory: /a}}`, "spec.conversation.id: Required value"),
		no("a conversation without a directory", `spec: {conversation: {id: a}}`, "spec.conversation.workingDirectory: Required value"),
		no("a conversation id that starts with a dash", `spec: {conversation: {id: "-resume", workingDirectory: /a}}`, idForm),
		no("an empty conversation id", `spec: {conversation: {id: "", workingDirectory: /a}}`, idForm),
		no("a conversation id with a slash", `spec: {conversation: {id: ../x, workingDirectory: /a}}`, idForm),
		no("a conversation id with a newline", `spec: {conversation: {id: "a\n", workingDirectory: /a}}`, idForm),
		no("a conversation id of 129 characters", `spec: {conversation: {id: `+repeat("i", 129)+`, workingDirectory: /a}}`, "spec.conversation.id: Too long: may not be more than 128"),
		no("a conversation in a relative directory", `spec: {conversation: {id: a, workingDirectory: src}}`, "conversation.workingDirectory "+absolute),
		no("a conversation in a home directory", `spec: {conversation: {id: a, workingDirectory: ~/src}}`, "conversation.workingDirectory "+absolute),
		no("a conversation in a directory with a newline", `spec: {conversation: {id: a, workingDirectory: "/a\nb"}}`, "without control characters"),
	)

	It("C008 is refused for a standing session's reference in place of a work item", func(ctx context.Context) {
		bad(ctx, `spec: {workItem: "standing:x"}`, "spec.workItem", "must be of type object")
	}, NodeTimeout(time.Minute))
})

// gates are n start gates in YAML.
func gates(n int) string {
	list := ""
	for i := range n {
		list += `{name: g` + string(rune('a'+i)) + `},`
	}
	return list
}
