package escapedhtml

import (
	"bytes"
	"html/template"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A view is the data of the templates of these tests.
type view struct {
	Text, Empty string
	Number      int
	Texts       []string
	Map         map[string]int
	Any         any
	Inner       *view
	Time        time.Time
	NilTime     *time.Time
	Addr        netip.Addr
	Kind        kind
}

type kind string

func testFuncs() map[string]any {
	return map[string]any{"upper": strings.ToUpper, "same": func(v any) any { return v }}
}

// executeBoth executes source with this package and with html/template.
func executeBoth(t *testing.T, source string, data any) (got, want string, gotErr, wantErr error) {
	t.Helper()
	reference := template.Must(template.New("page").Option("missingkey=error").Funcs(testFuncs()).Parse(source))
	texts, err := Escape(reference, "page")
	if err != nil {
		t.Fatal(err)
	}
	templates, err := Parse(testFuncs(), FormatSource(texts))
	if err != nil {
		t.Fatalf("%v in\n%s", err, FormatSource(texts))
	}
	var gotText, wantText bytes.Buffer
	gotErr = templates.Execute(&gotText, "page", data)
	wantErr = reference.ExecuteTemplate(&wantText, "page", data)
	return gotText.String(), wantText.String(), gotErr, wantErr
}

// TestExecute checks that templates give what html/template gives.
func TestExecute(t *testing.T) {
	data := view{Text: `<a b="c">'+&`, Number: 3, Texts: []string{"x", "<y>", "z"}, Map: map[string]int{"b": 2, "a": 1},
		Any: kind("k"), Inner: &view{Text: "inner", Any: 7}, Time: time.Unix(0, 0), Kind: "one",
		Addr: netip.MustParseAddr("192.0.2.1")}
	for _, source := range []string{
		`{{.Text}} {{.Number}} {{.Any}} {{.Kind}} {{.Addr}} {{.Inner.Any}}`,
		`<title>{{.Text}}</title><p title="{{.Text}}">{{.Text}}</p>`,
		`<a href="{{.Text}}">a</a><a href="/p?q={{.Text}}&amp;r={{.Number}}">b</a><a href="/{{.Text}}">c</a>`,
		`{{range .Texts}}{{.}},{{else}}none{{end}}{{range $i, $x := .Texts}}{{if $i}}; {{end}}{{$x}}{{end}}`,
		`{{range $x := .Texts}}{{if eq $x "z"}}{{break}}{{end}}{{if eq $x "x"}}{{continue}}{{end}}{{$x}}{{end}}`,
		`{{range $k, $v := .Map}}{{$k}}={{$v}} {{end}}{{.Map.a}}{{len .Map}}{{range .Inner.Texts}}{{else}}none{{end}}`,
		`{{with .Inner}}{{.Text}}{{$.Text}}{{else}}no{{end}}{{with .Empty}}yes{{else}}no{{end}}`,
		`{{if and .Text (gt .Number 2)}}a{{else if .Empty}}b{{else}}c{{end}}{{if or .Empty .Number}}d{{end}}`,
		`{{if not .Empty}}{{and 1 0}}{{or 0 2}}{{and .Empty .Inner.Inner.Text}}{{end}}`,
		`{{if eq .Kind "one"}}1{{end}}{{if ne .Kind "one"}}2{{end}}{{if le 3 .Number}}3{{end}}{{if lt .Number 3}}4{{end}}`,
		`{{if .Time.IsZero}}zero{{else}}time{{end}}{{if .Addr.IsValid}}valid{{end}}{{if ge .Number 3}}ge{{end}}`,
		`{{define "part"}}<i>{{.}}</i>{{end}}{{template "part" .Text}}{{template "part" upper .Text}}`,
		`{{$x := .Text}}{{if true}}{{$x := "inner"}}{{$x}}{{$x = "set"}}{{$x}}{{end}}{{$x}}{{$x = "set"}}{{$x}}`,
		`{{printf "%s-%d" .Kind .Number}}{{.Text | upper}}{{same .Inner.Text | upper}}{{(same .Inner).Text}}`,
	} {
		got, want, err, wantErr := executeBoth(t, source, data)
		if got != want || err != nil || wantErr != nil {
			t.Errorf("%s\ngot  %q, %v\nwant %q, %v", source, got, err, want, wantErr)
		}
	}
}

// TestExecuteErrors checks that a template that html/template refuses to execute writes nothing.
func TestExecuteErrors(t *testing.T) {
	for source, want := range map[string]string{
		`a{{.Absent}}`:                   "has no Absent",
		`a{{.Map.absent}}`:               "has no absent",
		`a{{.Inner.Text}}`:               "has no Text",
		`a{{.Text.IsZero}}`:              "has no IsZero",
		`a{{.NilTime.IsZero}}`:           "has no IsZero",
		`a{{upper .Number}}`:             "argument 1",
		`a{{upper .Text .Text}}`:         "2 arguments",
		`a{{range .Number.Text}}{{end}}`: "has no Text",
		`a{{range .Time}}{{end}}`:        "has no elements",
		`a{{eq .Text .Number}}`:          "are not compared",
		`a{{printf .Number}}`:            "takes a format",
		`a{{len .Number}}`:               "len takes",
	} {
		got, _, err, wantErr := executeBoth(t, source, view{})
		if err == nil || !strings.Contains(err.Error(), want) || wantErr == nil || got != "" {
			t.Errorf("%s: %q, %v, want %q; html/template: %v", source, got, err, want, wantErr)
		}
	}
}

// TestRecursion checks that templates that call each other without end are an error.
func TestRecursion(t *testing.T) {
	templates, err := Parse(nil, `{{define "x"}}{{template "y"}}{{end}}{{define "y"}}{{template "x"}}{{end}}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := templates.Execute(io.Discard, "x", nil); err == nil || !strings.Contains(err.Error(), "call each other") {
		t.Error(err)
	}
}

// TestParseErrors checks that functions of html/template that this package lacks are refused.
func TestParseErrors(t *testing.T) {
	for _, source := range []string{`{{. | _html_template_jsvalescaper}}`, `{{index . 1}}`} {
		if _, err := Parse(nil, source); err == nil || !strings.Contains(err.Error(), "not defined") {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// FuzzEscapers checks that hostile text is escaped as html/template escapes it.
func FuzzEscapers(f *testing.F) {
	const source = `<title>{{.}}</title>{{.}}<p title="{{.}}"><a href="{{.}}">1</a><a href="/x/{{.}}">2</a>` +
		`<a href="?q={{.}}">3</a>`
	for _, text := range []string{"", "\x00<script>'\"&+", "javascript:alert(1)", "JAVASCRIPT:1", "a/b:c", "HtTpS://x/%2F%zz%",
		"mailto:a@b.example", "data:text/html,x", "\xff\xfe é \u2028", "(')[]{}|^`~", " javascript:1", ":", "x:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want, err, wantErr := executeBoth(t, source, text); got != want || err != nil || wantErr != nil {
			t.Errorf("%q\ngot  %q, %v\nwant %q, %v", text, got, err, want, wantErr)
		}
	})
}
