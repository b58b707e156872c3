package project

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum/crawler/botauth"
	"github.com/decorum-crawler/decorum/frontier"
	"github.com/decorum-crawler/decorum/internal/testfile"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
)

// TestProjectErrorsHideValues: an error about a project file repeats neither a value of the file
// nor an unknown field name that may be a value. The text for the operator's terminal shortens them.
func TestProjectErrorsHideValues(t *testing.T) {
	const secret = "geheim7"
	for _, text := range []string{
		"geheim7: 1\n", "agent: {geheim7: 1}\n", "geheim7\n", "- geheim7\n", "root:geheim7:0:0\ndaemon:geheim7:1:1\n",
		"# \xff\ngeheim7: [\n", "fetch: {headers: {X-Key: geheim7, X-Key: geheim7}}\n",
		"agent:\n  contact: geheim7: geheim7\n",
		"geheim7: 1\ngeheim7: 2\n", "project: &geheim7 geheim7\n", "project: !geheim7 geheim7\n",
		"project: *geheim7\n", `project: "\geheim7"`,
		"limits: {workers: geheim7}\n", "limits: {pages: 'geheim7\"geheim7'}\n",
		"limits: {requests_per_second: geheim7}\n",
		"robots: {meta: geheim7}\n", "politeness: {delay: geheim7}\n", "fetch: {max_body: geheim7}\n",
		"seeds: geheim7\n",
		"seeds: {geheim7: geheim7}\n", "store: geheim7\n", "fetch: {headers: [geheim7]}\n",
		"project: {geheim7: geheim7}\n",
		"politeness: {hosts: {a.example: {expires: geheim7}}}\n", "politeness: {hosts: {a.example: geheim7}}\n",
		minimalFile + "project: Geheim7 geheim7\n", minimalFile + "agent: {product: 'geheim7 1'}\n",
		"agent: {product: 'geheim7`\" 1'}\n",
		minimalFile + "scope: {within: geheim7}\n", minimalFile + "scope: {exclude: ['geheim7(']}\n",
		minimalFile + "scope: {exclude: ['`(geheim7`']}\n",
		minimalFile + "scope: {exclude: ['\"geheim7(`x\"']}\n", minimalFile + "scope: {params: {drop: ['geheim7&']}}\n",
		minimalFile + "robots: {dialect: geheim7}\n",
		minimalFile + "robots: {purpose: [geheim7]}\n", minimalFile + "revisit: {mode: geheim7}\n",
		minimalFile + "fetch: {content_types: [geheim7]}\n",
		minimalFile + "fetch: {connect_to: ['geheim7']}\n", minimalFile + "fetch: {connect_to: ['a:geheim7:b:80']}\n",
		minimalFile + "fetch: {headers: {X-Key: \"geheim7\\n\"}}\n",
		minimalFile + "fetch: {proxy: 'geheim7://me:geheim7@geheim7'}\n",
		minimalFile + "fetch: {proxy: 'http://me:geheim7@p.example:geheim7'}\n",
		minimalFile + "politeness: {window: {hours: geheim7}}\n",
		minimalFile + "politeness: {window: {hours: 22:00-06:00, zone: geheim7}}\n",
		minimalFile + "store: {redis: {addresses: [geheim7]}}\n",
		minimalFile + "store: {redis: {addresses: ['127.0.0.1:1'], prefix: 'geheim7{'}}\n",
		minimalFile + "store: {redis: {addresses: ['127.0.0.1:1'], durability: geheim7}}\n",
		minimalFile + "agent: {signature: {keys: [k], directory: geheim7}}\n",
		"agent: {contact: geheim7}\nseeds: [https://a.example/]\n",
		"agent: {contact: mailto:a@b.example}\nseeds: [geheim7]\n",
	} {
		_, err := Read(testfile.Write(t, "p.yaml", text))
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		all := []error{err}
		if list := (*ErrorList)(nil); errors.As(err, &list) {
			all = list.Unwrap()
		}
		for _, err := range all {
			if strings.Contains(strings.ToLower(err.Error()), secret) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: the error repeats a value: %v", text, err)
			}
		}
		if !strings.Contains(err.Error(), "p.yaml:") {
			t.Errorf("%q: the error does not name the file: %v", text, err)
		}
		long := strings.ReplaceAll(text, secret, strings.Repeat(secret, 1000))
		if _, err := Read(testfile.Write(t, "p.yaml", long)); err == nil || len(DetailedErrorText(err)) > 2000 {
			t.Errorf("%q with a long value: the detail has %d bytes: %.400v", text, len(DetailedErrorText(err)), err)
		}
	}
}

// TestAllErrorsAtOnce: one error lists every problem of a file in the order of the file, each with its
// position, and leaves out what follows from another.
func TestAllErrorsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string // a part of each error
	}{
		{"types, values and names together", `# a crawl
agent: {product: my bot}
seeds: [https://example.com/, example.com]
scope:
  within: hosts
  max_dpeth: 3
robots: {dialect: yandx, meta: yes}
limits: {workers: many, pages: -1}
politeness:
  window: {hours: 22-6, zone: Prague}
`, []string{
			`p.yaml:2:1: agent.contact: contact is required`,
			`p.yaml:2:18: agent.product: "…" is not a product token`,
			`p.yaml:3:31: seeds[1]: "…" is not a URL`,
			`p.yaml:5:11: scope.within: "…" is not one of path, origin, host, domain, any; did you mean host?`,
			`p.yaml:6:3: unknown field scope.max_dpeth; did you mean scope.max_depth?`,
			`p.yaml:7:19: robots.dialect: "…" is not one of google, yandex, google-oss; did you mean yandex?`,
			`p.yaml:7:32: robots.meta: "…" is neither true nor false`,
			`p.yaml:8:19: limits.workers: "…" is not a whole number`,
			`p.yaml:8:32: limits.pages: -1 is out of range`,
			`p.yaml:10:19: politeness.window.hours: "…" is not a range of hours`,
			`p.yaml:10:31: politeness.window.zone: "…" is not a time zone`,
		}},
		{"a field of another section", minimalFile + "workers: 8\ndelay: 2s\nmax_depth: 1\nmode: x\nratelimit: 1\n",
			[]string{
				`p.yaml:3:1: unknown field workers; did you mean limits.workers?`,
				`p.yaml:4:1: unknown field delay; did you mean politeness.delay?`,
				`p.yaml:5:1: unknown field max_depth; did you mean scope.max_depth?`,
				`p.yaml:6:1: unknown field mode; expected one of project, agent`,
				`p.yaml:7:1: unknown field ratelimit; expected one of project, agent`,
			}},
		{"a misspelt field counts as the one it misspells",
			"agent: {contakt: mailto:a@b.example}\nseed: [a]\nagnt: {}\n", []string{
				`p.yaml:1:9: unknown field agent.contakt; did you mean agent.contact?`,
				`p.yaml:2:1: unknown field seed; did you mean seeds?`,
				`p.yaml:3:1: unknown field agnt; did you mean agent?`,
			}},
		{"a field of the wrong type has no second error",
			"agent: [a]\nseed_files: a\npoliteness: {window: {hours: [a], zone: UTC}}\n",
			[]string{`p.yaml:1:8: agent: expected fields`, `p.yaml:2:13: seed_files: expected a list`,
				`p.yaml:3:30: politeness.window.hours: expected a single value`}},
		{"comments only", "# nothing\n", []string{`p.yaml:1:1: agent.contact: contact is required`,
			`p.yaml:1:1: seeds: nothing to crawl`}},
		{"required fields behind a comment", "# nothing\n\nproject: a\n", []string{
			`p.yaml:3:1: agent.contact: contact is required`, `p.yaml:3:1: seeds: nothing to crawl`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := ParseUnchecked("p.yaml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			list := (*ErrorList)(nil)
			if err = d.Check(); !errors.As(err, &list) {
				t.Fatalf("%v, want several errors", err)
			}
			for i, err := range list.Unwrap() {
				if i < len(tt.want) && !strings.HasPrefix(err.Error(), tt.want[i]) {
					t.Errorf("error %d:\n%v, want\n%s", i, err, tt.want[i])
				}
			}
			if len(list.Unwrap()) != len(tt.want) {
				t.Errorf("%d errors, want %d: %v", len(list.Unwrap()), len(tt.want), err)
			}
		})
	}
}

// TestManyErrors: an ErrorList describes the first 20 errors and counts the others.
func TestManyErrors(t *testing.T) {
	for _, text := range []string{
		minimalFile + "scope: {exclude: [" + strings.Repeat("'(', ", 50) + "]}\n",
		minimalFile + "scope: {exclude: [" + strings.Repeat("{}, ", 49) + "'(']}\n",
	} {
		_, err := Read(testfile.Write(t, "p.yaml", text))
		list := (*ErrorList)(nil)
		if !errors.As(err, &list) || len(list.Unwrap()) != 20 || !strings.HasSuffix(err.Error(), "\nand 30 more") {
			t.Errorf("%d errors, %v; want 20 and 30 more", len(list.Unwrap()), err)
		}
	}
}

// TestChoices: the values in choiceFields are those that the code knows.
func TestChoices(t *testing.T) {
	for _, f := range choiceFields {
		for _, choice := range append(slices.Clone(f.choices), "x") {
			p := Default()
			if v := p.fieldAt(f.path); v.Kind() == reflect.Slice {
				v.Set(reflect.ValueOf([]string{choice}))
			} else {
				v.SetString(choice)
			}
			_, scopeErr := frontier.ParseScopeMode(p.Scope.ScopeMode)
			_, dialectErr := robots.ParseDialect(p.Robots.Dialect)
			_, revisitErr := frontier.ParseRevisitMode(p.Revisit.Mode)
			_, signerErr := new(botauth.Signer).WithSignatureAgentForm(
				botauth.SignatureAgentForm(p.Agent.Signature.SignatureAgentForm))
			err := errors.Join(scopeErr, dialectErr, revisitErr, signerErr, aiuse.ValidatePurposes(p.Robots.Purposes))
			problems := checkedBy(checkChoices, &p)
			if isKnown := choice != "x"; isKnown && err != nil || isKnown != (len(problems) == 0) {
				t.Errorf("%s: %q: %v, %v", f.path, choice, problems, err)
			}
		}
	}
}

// TestTabs: a tab in the indentation is an error that names the tab, and its column, except between braces, where
// YAML allows it.
func TestTabs(t *testing.T) {
	for text, want := range map[string]string{
		"agent:\n\tproduct: a\n":                          "p.yaml:2:1: a tab; YAML indents with spaces",
		"agent:\n  product: a\n\tcontact: b\n":            "p.yaml:3:1: a tab; YAML indents with spaces",
		"agent:\r\n  product: a\r\n  \tcontact: b\r\n":    "p.yaml:3:3: a tab; YAML indents with spaces",
		"seeds:\n\t- http://a.example/\n":                 "p.yaml:2:1: a tab; YAML indents with spaces",
		"scope:\n  exclude:\n  - a\n \t- b\nlimits: {}\n": "p.yaml:4:2: a tab; YAML indents with spaces",
		"a: {b: c,\n\t@d: e}\n":                           "p.yaml:2:2: '@' is a reserved character",
	} {
		if _, err := ParseFile("p.yaml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
