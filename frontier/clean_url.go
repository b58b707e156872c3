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

// ParamCleaner rewrites URLs by ParamRules, and takes session ids off their paths. It
// is immutable and safe for concurrent use. A nil ParamCleaner has no rules.
type ParamCleaner struct {
	drop, keep []string
	sort       bool
}

// NewParamCleaner returns the ParamCleaner of rules, or an error that names a bad one.
func NewParamCleaner(rules ParamRules) (*ParamCleaner, error) {
	p := &ParamCleaner{sort: rules.Sort}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{rules.Drop, &p.drop}, {rules.Keep, &p.keep}} {
		for _, name := range list.from {
			u, err := decorum.ParseURL("http://x/?" + name)
			_, canonical, _ := strings.Cut(u.PathAndQuery(), "?")
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

// An AppliedCleaningRule is one thing that ParamCleaner.CleanURLAndExplain did to a URL.
type AppliedCleaningRule struct {
	Removed string `json:"took"` // what was taken off; empty if the order was changed
	Rule    string `json:"rule"` // by which
}

// CleanURL returns u by the rules. To clean twice is to clean once.
func (p *ParamCleaner) CleanURL(u decorum.URL) decorum.URL { return p.cleanURL(u, nil) }

// CleanURLAndExplain cleans u as CleanURL does, and says what was changed.
func (p *ParamCleaner) CleanURLAndExplain(u decorum.URL) (clean decorum.URL, changes []AppliedCleaningRule) {
	clean = p.cleanURL(u, func(c AppliedCleaningRule) { changes = append(changes, c) })
	return clean, changes
}

func (p *ParamCleaner) cleanURL(u decorum.URL, report func(AppliedCleaningRule)) decorum.URL {
	if u.IsZero() {
		return u
	}
	if report == nil {
		report = func(AppliedCleaningRule) {}
	}
	original := u.PathAndQuery()
	path, query, hasQuery := strings.Cut(original, "?")
	cleaned := stripSessionIDsFromPath(path, report)
	if hasQuery {
		if query = p.cleanQuery(query, report); query != "" {
			cleaned += "?" + query
		}
	}
	if cleaned == original {
		return u
	}
	clean, err := decorum.ParseURL(u.Origin().String() + cleaned)
	if err != nil || clean.Origin() != u.Origin() {
		return u
	}
	return clean
}

// cleanQuery returns what the rules leave of a query.
func (p *ParamCleaner) cleanQuery(query string, report func(AppliedCleaningRule)) string {
	if p == nil || len(p.drop) == 0 && !p.sort {
		return query
	}
	var remaining []string
	for parameter := range strings.SplitSeq(query, "&") {
		if rule, isDropped := p.matchingDropRule(parameter); isDropped {
			report(AppliedCleaningRule{Removed: parameter, Rule: rule})
			continue
		}
		remaining = append(remaining, parameter)
	}
	if p.sort && !slices.IsSortedFunc(remaining, compareParamsByName) {
		slices.SortStableFunc(remaining, compareParamsByName)
		report(AppliedCleaningRule{Rule: "params.sort"})
	}
	return strings.Join(remaining, "&")
}

// matchingDropRule returns the rule that takes a parameter off, if one does.
func (p *ParamCleaner) matchingDropRule(parameter string) (rule string, isDropped bool) {
	name, _, _ := strings.Cut(parameter, "=")
	matches := func(pattern string) bool { return matchesWildcard(pattern, name) }
	if slices.ContainsFunc(p.keep, matches) {
		return "", false
	}
	if i := slices.IndexFunc(p.drop, matches); i >= 0 {
		return "params.drop: " + p.drop[i], true
	}
	return "", false
}

func compareParamsByName(a, b string) int {
	name := func(parameter string) string {
		before, _, _ := strings.Cut(parameter, "=")
		return before
	}
	return strings.Compare(name(a), name(b))
}

// matchesWildcard reports whether name is what pattern says: "*" stands for any characters.
func matchesWildcard(pattern, name string) bool {
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

// sessionNames are the names under which servers put the id of a session into
// the path, after a semicolon or as a segment name=id. Who comes without a
// cookie is given a new id with every page, so that no page is ever the same.
var sessionNames = [...]string{"jsessionid", "phpsessid", "sessionid", "session_id", "aspsessionid", "sid"}

// minSIDLength is how long a "sid" is that is the id of a session, and not of a
// station or a story.
const minSIDLength = 8

// sessionRule is what ParamCleaner.CleanURLAndExplain names.
const sessionRule = "session id in the path"

// hasSessionIDInPath reports whether the path of u has the id of a session.
func hasSessionIDInPath(u decorum.URL) bool {
	path, _, _ := strings.Cut(u.PathAndQuery(), "?")
	return stripSessionIDsFromPath(path, func(AppliedCleaningRule) {}) != path
}

// stripSessionIDsFromPath returns path without ids of sessions: ;jsessionid=…, the
// segment /(S(…))/ of ASP.NET, and segments such as /PHPSESSID=…/.
func stripSessionIDsFromPath(path string, report func(AppliedCleaningRule)) string {
	if !strings.ContainsAny(path, ";(=") {
		return path
	}
	segments := strings.Split(path, "/")
	remaining := segments[:0]
	for i, s := range segments {
		stripped := stripSessionParamsFromSegment(s)
		if stripped != s {
			report(AppliedCleaningRule{Removed: s, Rule: sessionRule})
		}
		if isSessionIDPathPart(stripped) {
			report(AppliedCleaningRule{Removed: stripped, Rule: sessionRule})
			if i < len(segments)-1 {
				continue
			}
			stripped = ""
		}
		remaining = append(remaining, stripped)
	}
	if path = strings.Join(remaining, "/"); path == "" {
		return "/"
	}
	return path
}

// stripSessionParamsFromSegment returns a segment without those of its parameters, after
// semicolons, that are ids of sessions.
func stripSessionParamsFromSegment(segment string) (stripped string) {
	name, parameters, ok := strings.Cut(segment, ";")
	stripped = name
	for more := ok; more; {
		var parameter string
		parameter, parameters, more = strings.Cut(parameters, ";")
		if !isSessionIDPathPart(parameter) {
			stripped += ";" + parameter
		}
	}
	return stripped
}

// isSessionIDPathPart reports whether s is name=id, or (S(id)) as ASP.NET writes it, where
// other letters may stand before and after.
func isSessionIDPathPart(s string) bool {
	if name, id, ok := strings.Cut(s, "="); ok && id != "" {
		for _, known := range sessionNames {
			if strings.EqualFold(name, known) {
				return len(id) >= minSIDLength || known != "sid"
			}
		}
		return false
	}
	return len(s) > len("(S())") && s[0] == '(' && strings.HasSuffix(s, "))") && strings.Contains(s, "S(")
}
