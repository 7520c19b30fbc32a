package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// spec is a test, a container or a row of a table whose name names ids.
type spec struct {
	file string
	line int
	// text is its name with those of what it stands in.
	text    string
	names   []idRange
	pending bool
}

// idRange is one id, or those from one to another.
type idRange struct{ first, last string }

// String implements fmt.Stringer.
func (r idRange) String() string {
	if r.first == r.last {
		return r.first
	}
	return r.first + "-" + r.last
}

// standIns are the doubles of other programs. Their tests prove that they fail as those
// do, and nothing of the product.
var standIns = []string{"test/fakeharness/", "test/fakemodel/"}

// proves says whether the spec proves something of the product: it runs, and tests it.
func (s spec) proves() bool {
	return !s.pending && !slices.ContainsFunc(standIns, func(dir string) bool { return strings.HasPrefix(s.file, dir) })
}

func (s spec) same(o spec) bool { return s.file == o.file && s.text == o.text }

var (
	// Ranges are written with a dash of either kind.
	inText = regexp.MustCompile(`\b(` + idForm + `)(?:\s*[-–]\s*(` + idForm + `))?\b`)
	// In the name of a function an id ends a word.
	inName = regexp.MustCompile(`(?:^Test|^Fuzz|_|[a-z])(` + idForm + `)(?:_|[A-Z]|$)`)

	containers = []string{"Describe", "Context", "When", "DescribeTable", "DescribeTableSubtree"}
	leaves     = []string{"It", "Specify", "Entry"}
)

// scan finds the specs of all test files below root that name ids.
func scan(root string) ([]spec, error) {
	dirs := map[string]map[string]any{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "bin", "node_modules"}, d.Name())):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(path)
		dir := filepath.ToSlash(filepath.Dir(rel))
		if dirs[dir] == nil {
			dirs[dir] = map[string]any{}
		}
		dirs[dir][filepath.ToSlash(rel)] = src
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []spec
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		specs, err := scanDir(dirs[dir])
		if err != nil {
			return nil, err
		}
		out = append(out, specs...)
	}
	return out, nil
}

// scanDir finds those of the files of one directory, by their sources.
func scanDir(sources map[string]any) ([]spec, error) {
	fset := token.NewFileSet()
	files, makers := map[string]*ast.File{}, map[string]bool{}
	for name, src := range sources {
		file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files[name] = file
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && makesRow(fn) {
				makers[fn.Name.Name] = true
			}
		}
	}
	var out []spec
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := &finder{fset: fset, file: name, makers: makers}
		for _, d := range files[name].Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				f.add(spec{text: fn.Name.Name, names: ranges(inName, fn.Name.Name)}, fn.Pos())
			}
			f.walk(d, spec{})
		}
		out = append(out, f.specs...)
	}
	return out, nil
}

// makesRow says whether a function makes a row of a table, named by its first argument.
func makesRow(fn *ast.FuncDecl) bool {
	if fn.Recv != nil || fn.Type.Results == nil || len(fn.Type.Results.List) != 1 {
		return false
	}
	switch t := fn.Type.Results.List[0].Type.(type) {
	case *ast.Ident:
		return t.Name == "TableEntry"
	case *ast.SelectorExpr:
		return t.Sel.Name == "TableEntry"
	}
	return false
}

type finder struct {
	fset *token.FileSet
	file string
	// makers are the package's functions that make a row of a table.
	makers map[string]bool
	specs  []spec
}

// add keeps a spec that names ids.
func (f *finder) add(s spec, at token.Pos) {
	if len(s.names) == 0 {
		return
	}
	s.file, s.line = f.file, f.fset.Position(at).Line
	f.specs = append(f.specs, s)
}

// walk looks at everything in a node that stands in a container.
func (f *finder) walk(n ast.Node, in spec) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			s, ok := f.node(n)
			if !ok {
				return true
			}
			s = s.inside(in)
			f.add(s, n.Pos())
			for _, arg := range n.Args[1:] {
				f.walk(arg, spec{text: s.text, pending: s.pending})
			}
			return false
		case *ast.KeyValueExpr: // a row of a table of the standard library's kind
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "name" {
				text, _ := literal(n.Value)
				f.add(spec{text: text, names: ranges(inText, text)}.inside(in), n.Pos())
			}
		}
		return true
	})
}

// inside is the spec with what it has of its container.
func (s spec) inside(in spec) spec {
	s.pending = s.pending || in.pending
	if in.text != "" {
		s.text = in.text + ": " + s.text
	}
	return s
}

// node is what a call of ginkgo's, of t.Run or of a maker of rows declares.
func (f *finder) node(call *ast.CallExpr) (spec, bool) {
	name := called(call)
	plain := strings.TrimLeft(name, "FPX")
	s := spec{pending: name != plain && !strings.HasPrefix(name, "F")}
	if !slices.Contains(containers, plain) && !slices.Contains(leaves, plain) && name != "Run" && !f.makers[name] || len(call.Args) < 2 {
		return s, false
	}
	text, ok := literal(call.Args[0])
	if !ok {
		return s, false
	}
	s.text, s.names = text, ranges(inText, text)
	for _, arg := range call.Args[1:] {
		if id, ok := arg.(*ast.Ident); ok && id.Name == "Pending" {
			s.pending = true
		}
		if label, ok := arg.(*ast.CallExpr); ok && called(label) == "Label" {
			for _, l := range label.Args {
				text, _ := literal(l)
				s.names = append(s.names, ranges(inText, text)...)
			}
		}
	}
	return s, true
}

// called is the name of the function that a call calls.
func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// literal is the text of a string literal, or of a sum with one; what is not literal in
// it is an ellipsis.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, leftOK := literal(e.X)
		right, rightOK := literal(e.Y)
		if e.Op != token.ADD || !leftOK && !rightOK {
			return "", false
		}
		for _, side := range []struct {
			text *string
			ok   bool
		}{{&left, leftOK}, {&right, rightOK}} {
			if !side.ok {
				*side.text = "…"
			}
		}
		return left + right, true
	}
	return "", false
}

// ranges are the ids in a text.
func ranges(form *regexp.Regexp, text string) []idRange {
	var out []idRange
	for _, m := range form.FindAllStringSubmatch(text, -1) {
		r := idRange{m[1], m[1]}
		if len(m) > 2 && m[2] != "" {
			r.last = m[2]
		}
		out = append(out, r)
	}
	return out
}
