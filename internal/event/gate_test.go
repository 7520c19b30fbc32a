package event_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/event"
)

// The gate reads the sources alone, as they stand: what it does not understand, it refuses.

const (
	room     = "github.com/theloop-dev/the-loop/internal/event"
	roomDir  = "internal/event/"
	emitDir  = "controllers/internal/emit/"
	recorder = "the Kubernetes recorder is called by " + emitDir + " alone"
)

var (
	// emitters are the functions that tell of an event, with the place of the event among
	// their arguments. What such a function is given, it may hand on.
	emitters = map[string][]int{"Emit": {0, 2}, "EmitAbout": {1}, "tell": {0}}
	// handers hand on what emitters have kept.
	handers = []string{"Recorded"}
	// ways past the one way.
	recorderCalls   = []string{"Eventf", "AnnotatedEventf", "GetEventRecorder", "GetEventRecorderFor", "NewRecorder", "NewEventRecorder"}
	recorderImports = []string{"k8s.io/client-go/tools/events", "k8s.io/client-go/tools/record", "k8s.io/client-go/kubernetes/typed/events/v1"}
	programDirs     = []string{"api", "cmd", "controllers", "internal", "pkg"}
)

// gate is what was found in the sources.
type gate struct {
	problems []string
	// declared are the names of events by those of the variables in the catalogue.
	declared map[string]string
	// told are the fields with which each variable was emitted.
	told map[string]map[string]bool
}

var _ = Describe("the gate", func() {
	It("C208: every event that is told is in the catalogue, every one in the catalogue is told, with every field, and nothing goes past it", func() {
		Expect(inspect(os.DirFS("../.."))).To(BeEmpty())
	})

	DescribeTable("C208: refuses",
		func(name, text, problem string) {
			files := base()
			files[name] = source(text)
			Expect(inspect(files)).To(ConsistOf(ContainSubstring(problem)))
		},
		Entry("a name that is not declared", "internal/session/x.go", caller(`s.Emit(event.SessionVanished, "")`), "SessionVanished is not in the catalogue"),
		Entry("an event made on the spot", "internal/session/x.go", caller(`s.Emit(event.Event{Name: "session.odd"}, "")`), "made outside"),
		Entry("an event in a variable", "internal/session/x.go", caller("e := event.SessionSpawned\n s.Emit(e, \"\")"), "not a value of the catalogue"),
		Entry("the same by the name of another import", "internal/session/x.go", strings.ReplaceAll(caller(`s.tell(ev.SessionOdd, "")`), `import "`, `import ev "`), "SessionOdd is not in the catalogue"),
		Entry("a field that is not declared", "internal/session/x.go", caller(`s.Emit(event.SessionSpawned, "", "text", "secret")`), `the field "text"`),
		Entry("a field whose name is computed", "internal/session/x.go", caller(`s.Emit(event.SessionSpawned, "", name, 1)`), "not literal"),
		Entry("fields from somewhere else", "internal/session/x.go", caller(`s.Emit(event.SessionSpawned, "", more()...)`), "cannot be followed"),
		Entry("an event that is never told", "internal/session/told.go", caller(``), "session.spawned is emitted nowhere"),
		Entry("a field that is never told", "internal/session/told.go", caller(`s.Emit(event.SessionSpawned, "")`), `session.spawned is never told with its field "harness"`),
		Entry("a call of the recorder", "controllers/hub/x.go", "package hub\nfunc f(r R) { r.Eventf(nil, nil, \"\", \"\", \"\", \"\") }", recorder),
		Entry("a recorder of one's own", "controllers/hub/x.go", "package hub\nfunc f(m M) { _ = m.GetEventRecorder(\"\") }", recorder),
		Entry("an import of the recorder", "cmd/x/x.go", "package main\nimport _ \"k8s.io/client-go/tools/record\"", recorder),
	)

	It("takes a field that a local list holds, and what an emitter hands on", func() {
		files := base()
		files["internal/session/x.go"] = source(caller("fields := []any{\"harness\", 1}\n s.tell(event.SessionSpawned, \"\", append(fields, \"harness\", true)...)") +
			"\nfunc (s S) tell(e event.Event, m string, f ...any) { s.Emit(e, m, f...) }")
		Expect(inspect(files)).To(BeEmpty())
	})
})

// base is a program that tells of its one event.
func base() fstest.MapFS {
	return fstest.MapFS{
		"internal/event/catalogue.go": source("package event\nvar SessionSpawned = declare(Event{Name: \"session.spawned\", Fields: []string{\"harness\"}})"),
		"internal/session/told.go":    source(caller(`s.Emit(event.SessionSpawned, "", "harness", 1)`)),
	}
}

func source(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func caller(body string) string {
	return "package session\nimport \"" + room + "\"\nfunc f(s S) {\n" + body + "\n}"
}

// inspect returns what is wrong in the sources below root.
func inspect(root fs.FS) []string {
	GinkgoHelper()
	fset := token.NewFileSet()
	files := map[string]*ast.File{}
	for _, dir := range programDirs {
		if _, err := fs.Stat(root, dir); err != nil {
			continue
		}
		Expect(fs.WalkDir(root, dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			if err != nil {
				return err
			}
			files[path], err = parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
			return err
		})).To(Succeed())
	}
	g := &gate{declared: map[string]string{}, told: map[string]map[string]bool{}}
	fields := map[string][]string{}
	for path, f := range files {
		if strings.HasPrefix(path, roomDir) {
			g.declarations(f, fields)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasPrefix(path, roomDir) {
			g.file(fset, path, files[path])
		}
	}
	g.complete(fields)
	return g.problems
}

func (g *gate) complain(fset *token.FileSet, at token.Pos, format string, args ...any) {
	g.problems = append(g.problems, fmt.Sprintf("%s: %s", fset.Position(at), fmt.Sprintf(format, args...)))
}

// declarations finds the variables of the catalogue. The fields of the real one are those
// that it has at run time.
func (g *gate) declarations(f *ast.File, fields map[string][]string) {
	known := map[string]event.Event{}
	for _, e := range event.All() {
		known[e.Name] = e
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok || identifier(call.Fun) != "declare" {
			return true
		}
		lit := call.Args[0].(*ast.CompositeLit)
		for _, el := range lit.Elts {
			kv := el.(*ast.KeyValueExpr)
			switch identifier(kv.Key) {
			case "Name":
				g.declared[spec.Names[0].Name], _ = text(kv.Value)
			case "Fields":
				if list, ok := kv.Value.(*ast.CompositeLit); ok {
					for _, e := range list.Elts {
						name, _ := text(e)
						fields[spec.Names[0].Name] = append(fields[spec.Names[0].Name], name)
					}
				} else {
					fields[spec.Names[0].Name] = known[g.declared[spec.Names[0].Name]].Fields
				}
			}
		}
		return true
	})
}

// file looks at one file outside the catalogue.
func (g *gate) file(fset *token.FileSet, path string, f *ast.File) {
	pkg := ""
	for _, imp := range f.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		if slices.Contains(recorderImports, name) && !strings.HasPrefix(path, emitDir) {
			g.complain(fset, imp.Pos(), "%s", recorder)
		}
		if name == room {
			if pkg = "event"; imp.Name != nil {
				pkg = imp.Name.Name
			}
		}
	}
	for _, d := range f.Decls {
		fn, _ := d.(*ast.FuncDecl)
		handsOn := fn != nil && (emitters[fn.Name.Name] != nil || slices.Contains(handers, fn.Name.Name))
		ast.Inspect(d, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if sel, ok := n.Type.(*ast.SelectorExpr); ok && pkg != "" && identifier(sel.X) == pkg && sel.Sel.Name == "Event" {
					g.complain(fset, n.Pos(), "an event is made outside the catalogue")
				}
			case *ast.CallExpr:
				name := identifier(n.Fun)
				if slices.Contains(recorderCalls, name) && !strings.HasPrefix(path, emitDir) {
					g.complain(fset, n.Pos(), "%s", recorder)
				}
				if emitters[name] != nil && !handsOn && pkg != "" {
					g.call(fset, pkg, name, n, fn)
				}
			}
			return true
		})
	}
}

// call looks at one call of an emitter.
func (g *gate) call(fset *token.FileSet, pkg, name string, call *ast.CallExpr, in *ast.FuncDecl) {
	at := -1
	for _, i := range emitters[name] {
		if i < len(call.Args) {
			if sel, ok := call.Args[i].(*ast.SelectorExpr); ok && identifier(sel.X) == pkg {
				at = i
			}
			if _, ok := call.Args[i].(*ast.CompositeLit); ok {
				return // complained of already
			}
		}
	}
	if at < 0 {
		g.complain(fset, call.Pos(), "what %s is given is not a value of the catalogue", name)
		return
	}
	v := call.Args[at].(*ast.SelectorExpr).Sel.Name
	if g.declared[v] == "" {
		g.complain(fset, call.Pos(), "%s is not in the catalogue", v)
		return
	}
	if g.told[v] == nil {
		g.told[v] = map[string]bool{}
	}
	args := call.Args[min(at+2, len(call.Args)):]
	if call.Ellipsis.IsValid() {
		var ok bool
		if args, ok = list(args[0], in); !ok {
			g.complain(fset, call.Pos(), "the fields cannot be followed: list them in the call, or in the function")
			return
		}
	}
	for i := 0; i < len(args); i += 2 {
		field, ok := text(args[i])
		if !ok {
			g.complain(fset, args[i].Pos(), "the name of a field is not literal")
			continue
		}
		g.told[v][field] = true
	}
}

// list are the elements of a list of fields: of a literal, of a local variable that is one,
// or of what is appended to such.
func list(e ast.Expr, in *ast.FuncDecl) ([]ast.Expr, bool) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return e.Elts, true
	case *ast.CallExpr:
		if identifier(e.Fun) != "append" {
			return nil, false
		}
		first, ok := list(e.Args[0], in)
		return append(slices.Clone(first), e.Args[1:]...), ok
	case *ast.Ident:
		var found []ast.Expr
		times := 0
		ast.Inspect(in, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == 1 && identifier(a.Lhs[0]) == e.Name {
				if lit, ok := a.Rhs[0].(*ast.CompositeLit); ok {
					found = lit.Elts
				}
				times++
			}
			return true
		})
		return found, times == 1 && found != nil
	}
	return nil, false
}

// complete compares what is told with what is declared. An event of standing sessions is
// told where the one that it takes the place of is.
func (g *gate) complete(fields map[string][]string) {
	byName := map[string]string{}
	for v, name := range g.declared {
		byName[name] = v
	}
	for _, e := range event.All() {
		if of := event.OfStanding(e); of.Name != e.Name && g.told[byName[e.Name]] != nil && byName[of.Name] != "" {
			v := byName[of.Name]
			if g.told[v] == nil {
				g.told[v] = map[string]bool{}
			}
			maps.Copy(g.told[v], g.told[byName[e.Name]])
		}
	}
	for _, v := range slices.Sorted(maps.Keys(g.declared)) {
		told, ok := g.told[v]
		if !ok {
			g.problems = append(g.problems, g.declared[v]+" is emitted nowhere: take it out of the catalogue")
			continue
		}
		for field := range told {
			if !slices.Contains(fields[v], field) {
				g.problems = append(g.problems, fmt.Sprintf("%s is told with the field %q, which it does not declare", g.declared[v], field))
			}
		}
		for _, field := range fields[v] {
			if !told[field] {
				g.problems = append(g.problems, fmt.Sprintf("%s is never told with its field %q", g.declared[v], field))
			}
		}
	}
}

func identifier(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func text(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}
