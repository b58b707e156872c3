package page

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"slices"
	"sync"
	"text/template/parse"

	cmpdiff "github.com/google/go-cmp/cmp"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A BranchRecorder holds templates that record which of their branches are executed. A branch is
// the body of a template, or the then or else list of an if, range or with. It also compares each page
// with the page that the escaped templates give.
type BranchRecorder struct {
	assets   assets
	views    map[string]*template.Template // executed by html/template
	escaped  escapedTemplates
	branches []branch          // by number
	numbers  map[branchKey]int // the number of each branch
	mu       sync.Mutex        // guards executed and differ
	executed map[int]bool      // by number
	differ   []string          // the pages that the escaped templates render otherwise
}

// A branchKey identifies a branch. Each page has a copy of the parts; a branch of a part has the
// same key in all of them.
type branchKey struct {
	file string
	pos  parse.Pos
	list string // body, then branch or else branch
}

// A branch is a branch of a template, with its description.
type branch struct {
	branchKey
	text string // its position, and the action that it belongs to
}

// NewBranchRecorder loads the templates, and inserts at the beginning of each branch an action that
// records the branch.
func NewBranchRecorder() *BranchRecorder {
	a := loadAssets()
	r := &BranchRecorder{assets: a, views: sourceTemplates(a), escaped: loadTemplates(a), numbers: map[branchKey]int{},
		executed: map[int]bool{}}
	for _, name := range pageTemplateNames {
		view := r.views[name].Funcs(map[string]any{"cover": r.cover})
		for _, t := range view.Templates() {
			if t.Tree != nil && !parse.IsEmptyTree(t.Tree.Root) {
				r.addBody(t.Tree)
			}
		}
	}
	return r
}

// New returns the page of d with the templates of r.
func (r *BranchRecorder) New(d api.Daemon, audit *api.AuditLog) http.Handler {
	return newWebUIHandler(d, audit, r.assets, r)
}

// render implements renderer.
func (r *BranchRecorder) render(w io.Writer, name string, data templateData) error {
	var page, same bytes.Buffer
	if err := r.views[name].ExecuteTemplate(&page, "page", data); err != nil {
		return err
	}
	if err := r.escaped.render(&same, name, data); err != nil || !bytes.Equal(page.Bytes(), same.Bytes()) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.differ = append(r.differ, fmt.Sprintf("%s: %v\n%s", name, err, cmpdiff.Diff(page.String(), same.String())))
	}
	_, err := w.Write(page.Bytes())
	return err
}

// Different returns the pages that the escaped templates render otherwise than html/template.
func (r *BranchRecorder) Different() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.differ
}

// sourceTemplates parses the templates. A missing key of a map is an error when a template is
// executed, as a missing field of a struct is.
func sourceTemplates(a assets) map[string]*template.Template {
	parts := template.Must(template.New("").Option("missingkey=error").Funcs(templateFuncs(a)).ParseGlob(
		"templates/parts/*.html"))
	templates := map[string]*template.Template{}
	for _, name := range pageTemplateNames {
		t := template.Must(parts.Clone())
		templates[name] = template.Must(t.ParseFiles("templates/" + name + ".html"))
	}
	return templates
}

// cover records that a branch is executed. Templates call it.
func (r *BranchRecorder) cover(number int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.executed[number] = true
	return true
}

// Missed returns the branches that were not executed, in the order of the files.
func (r *BranchRecorder) Missed() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var missed []branch
	for number, b := range r.branches {
		if !r.executed[number] {
			missed = append(missed, b)
		}
	}
	slices.SortStableFunc(missed, func(a, b branch) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.pos, b.pos))
	})
	for _, b := range missed {
		list = append(list, b.text)
	}
	return list
}

// addBody adds the branches of a template.
func (r *BranchRecorder) addBody(tree *parse.Tree) {
	r.addLists(tree, tree.Root)
	r.add(tree, tree.Root, tree.Root, "body", fmt.Sprintf("{{define %q}}", tree.Name))
}

// addLists adds the branches below a list.
func (r *BranchRecorder) addLists(tree *parse.Tree, list *parse.ListNode) {
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.IfNode:
			r.addBranches(tree, n, &n.BranchNode, "if")
		case *parse.RangeNode:
			r.addBranches(tree, n, &n.BranchNode, "range")
		case *parse.WithNode:
			r.addBranches(tree, n, &n.BranchNode, "with")
		}
	}
}

// addBranches adds the branches of an if, range or with.
func (r *BranchRecorder) addBranches(tree *parse.Tree, n parse.Node, b *parse.BranchNode, keyword string) {
	text := fmt.Sprintf("{{%s %s}}", keyword, b.Pipe)
	r.addLists(tree, b.List)
	r.add(tree, n, b.List, "then branch", text)
	if b.ElseList != nil {
		r.addLists(tree, b.ElseList)
		r.add(tree, n, b.ElseList, "else branch", text)
	}
}

// add adds the list of n as a branch, and a call of cover to the list.
func (r *BranchRecorder) add(tree *parse.Tree, n parse.Node, list *parse.ListNode, name, text string) {
	key := branchKey{tree.ParseName, n.Position(), name}
	number, ok := r.numbers[key]
	if !ok {
		number = len(r.branches)
		r.numbers[key] = number
		place, _ := tree.ErrorContext(n)
		r.branches = append(r.branches, branch{key,
			fmt.Sprintf("%s: template %q: the %s of %s", place, tree.Name, name, text)})
	}
	list.Nodes = slices.Insert(list.Nodes, 0, callOfCover(number))
}

// callOfCover returns an action that calls cover. It assigns the result to a variable, so that it
// writes nothing and html/template does not escape it.
func callOfCover(number int) parse.Node {
	text := fmt.Sprintf("{{$covered := cover %d}}", number)
	trees, err := parse.Parse("cover", text, "", "", map[string]any{"cover": (*BranchRecorder).cover})
	if err != nil {
		panic(err) // the text is well-formed
	}
	return trees["cover"].Root.Nodes[0]
}
