package frontier

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// ParamRules are what a project says of the parameters in queries, on top of
// what Clean-param says. Names are as URLs have them; "*" in one stands for any
// characters.
type ParamRules struct {
	Drop []string // these are taken off
	Keep []string // but not these; without Drop, all but these are
	Sort bool     // the rest is put in the order of names
}

// Params rewrites URLs by ParamRules, and takes session ids off their paths. It
// is immutable and safe for concurrent use. A nil Params has no rules.
type Params struct {
	drop, keep []string
	sort       bool
}

// NewParams returns the Params of rules, or an error that names a bad one.
func NewParams(rules ParamRules) (*Params, error) {
	p := &Params{sort: rules.Sort}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{rules.Drop, &p.drop}, {rules.Keep, &p.keep}} {
		for _, name := range list.from {
			u, err := decorum.ParseURL("http://x/?" + name)
			_, canonical, _ := strings.Cut(u.Path(), "?")
			if err != nil || canonical == "" || strings.ContainsAny(name, "&=#") {
				return nil, fmt.Errorf("%q is not the name of a parameter", name)
			}
			*list.to = append(*list.to, canonical)
		}
	}
	if len(p.keep) > 0 && len(p.drop) == 0 {
		p.drop = []string{"*"}
	}
	return p, nil
}

// A Change is one thing that Params.Explain did to a URL.
type Change struct {
	Took string `json:"took"` // what was taken off; empty if the order was changed
	Rule string `json:"rule"` // by which
}

// Clean returns u by the rules. To clean twice is to clean once.
func (p *Params) Clean(u decorum.URL) decorum.URL { return p.clean(u, nil) }

// Explain cleans u as Clean does, and says what was changed.
func (p *Params) Explain(u decorum.URL) (clean decorum.URL, changes []Change) {
	clean = p.clean(u, func(c Change) { changes = append(changes, c) })
	return clean, changes
}

func (p *Params) clean(u decorum.URL, tell func(Change)) decorum.URL {
	if u.IsZero() {
		return u
	}
	if tell == nil {
		tell = func(Change) {}
	}
	whole := u.Path()
	path, query, asks := strings.Cut(whole, "?")
	kept := withoutSession(path, tell)
	if asks {
		if query = p.query(query, tell); query != "" {
			kept += "?" + query
		}
	}
	if kept == whole {
		return u
	}
	clean, err := decorum.ParseURL(u.Origin().String() + kept)
	if err != nil || clean.Origin() != u.Origin() {
		return u
	}
	return clean
}

// query returns what the rules leave of a query.
func (p *Params) query(query string, tell func(Change)) string {
	if p == nil || len(p.drop) == 0 && !p.sort {
		return query
	}
	var remaining []string
	for parameter := range strings.SplitSeq(query, "&") {
		if rule, drops := p.drops(parameter); drops {
			tell(Change{Took: parameter, Rule: rule})
			continue
		}
		remaining = append(remaining, parameter)
	}
	if p.sort && !slices.IsSortedFunc(remaining, compareNames) {
		slices.SortStableFunc(remaining, compareNames)
		tell(Change{Rule: "params.sort"})
	}
	return strings.Join(remaining, "&")
}

// drops returns the rule that takes a parameter off, if one does.
func (p *Params) drops(parameter string) (rule string, drops bool) {
	name, _, _ := strings.Cut(parameter, "=")
	is := func(pattern string) bool { return like(pattern, name) }
	if slices.ContainsFunc(p.keep, is) {
		return "", false
	}
	if i := slices.IndexFunc(p.drop, is); i >= 0 {
		return "params.drop: " + p.drop[i], true
	}
	return "", false
}

func compareNames(a, b string) int {
	name := func(parameter string) string {
		before, _, _ := strings.Cut(parameter, "=")
		return before
	}
	return strings.Compare(name(a), name(b))
}

// like reports whether name is what pattern says: "*" stands for any characters.
func like(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(name) < len(first)+len(last) || !strings.HasPrefix(name, first) || !strings.HasSuffix(name, last) {
		return false
	}
	name = name[len(first) : len(name)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return true
}
