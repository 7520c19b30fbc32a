package v1alpha1_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// constant is an exported constant of the package as its source has it.
type constant struct{ name, value, doc string }

// constants are the exported constants of a file with the prefix.
func constants(file, prefix string) []constant {
	GinkgoHelper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	Expect(err).NotTo(HaveOccurred())
	var found []constant
	for _, decl := range f.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			for i, name := range spec.(*ast.ValueSpec).Names {
				if !strings.HasPrefix(name.Name, prefix) {
					continue
				}
				value, err := strconv.Unquote(spec.(*ast.ValueSpec).Values[i].(*ast.BasicLit).Value)
				Expect(err).NotTo(HaveOccurred(), name.Name)
				found = append(found, constant{name.Name, value, spec.(*ast.ValueSpec).Doc.Text()})
			}
		}
	}
	return found
}

// camelCase is what the conventions of Kubernetes ask of reasons and types.
var camelCase = regexp.MustCompile(`^([A-Z][a-z]+)+([A-Z][a-z]*)?$`)

var _ = Describe("conditions.go", func() {
	It("says of each reason what it means and what to do, CamelCase and once", func() {
		all := constants("conditions.go", "Reason")
		Expect(len(all)).To(BeNumerically(">", 30))
		seen := map[string]string{}
		for _, c := range all {
			if c.value != "OOMKilled" { // as of containers
				Expect(c.value).To(MatchRegexp(camelCase.String()), c.name)
			}
			Expect(len(c.value)).To(BeNumerically("<=", 64), "the bound of status.reason")
			Expect(seen).NotTo(HaveKey(c.value), "%s and %s", c.name, seen[c.value])
			seen[c.value] = c.name
			Expect(c.doc).To(HavePrefix(c.name + ": "))
			Expect(strings.TrimSpace(c.doc)).To(HaveSuffix("."), c.name)
			said := strings.TrimPrefix(strings.TrimSpace(c.doc), c.name+": ")
			Expect(len(strings.Fields(said))).To(BeNumerically(">=", 3), c.name)
		}
	})

	It("names each reason after its value", func() {
		short := map[string]string{ // where the name is shorter on purpose
			"ReasonNoHost": "NoHostAvailable", "ReasonCrashLoop": "CrashLoopBackOff", "ReasonOccupied": "SessionOccupied",
		}
		for _, c := range constants("conditions.go", "Reason") {
			want := strings.TrimPrefix(c.name, "Reason")
			if short[c.name] != "" {
				want = short[c.name]
			}
			Expect(c.value).To(Equal(want), c.name)
		}
	})

	It("is the only file with reasons and condition types", func() {
		files, err := os.ReadDir(".")
		Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			if name := file.Name(); strings.HasSuffix(name, ".go") && name != "conditions.go" {
				Expect(constants(name, "Reason")).To(BeEmpty(), name)
				Expect(constants(name, "Condition")).To(BeEmpty(), name)
			}
		}
	})

	It("says of each condition type what it means, and the CRDs list exactly these", func(ctx context.Context) {
		documented := map[string]bool{}
		for _, c := range constants("conditions.go", "Condition") {
			Expect(c.value).To(MatchRegexp(camelCase.String()), c.name)
			Expect(c.doc).To(HavePrefix(c.name), c.name)
			documented[c.value] = true
		}
		listed := map[string]bool{}
		for kind, crd := range crds(ctx) {
			status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
			conditions, ok := status.Properties["conditions"]
			if kind == "SessionClass" {
				continue
			}
			Expect(ok).To(BeTrue(), kind)
			words := regexp.MustCompile(`[A-Za-z]+`).FindAllString(conditions.Description, -1)
			Expect(words[0]).To(Equal("conditions"), kind)
			for _, word := range words[1:] {
				listed[word] = true
			}
		}
		Expect(slices.Sorted(maps.Keys(listed))).To(Equal(slices.Sorted(maps.Keys(documented))))
	}, NodeTimeout(time.Minute))
})
