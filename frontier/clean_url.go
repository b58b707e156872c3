package frontier

import (
	"fmt"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum"
)

// ParamRules holds a project's rules for query parameters, which apply in addition to Clean-param.
// Names are spelled as in URLs. "*" in a name stands for any characters.
type ParamRules struct {
	Drop []string // parameters to remove
	Keep []string // exceptions from Drop; without Drop, all others are removed
	Sort bool     // sort the remaining parameters by name
	// KeepSessionIDs leaves session IDs in paths and queries. Without it, Keep does so by name, in
	// queries.
	KeepSessionIDs bool
}

// A ParamCleaner rewrites URLs by ParamRules, and removes session IDs from their paths and queries. It
// is immutable and safe for concurrent use. A nil ParamCleaner has no rules, but removes session IDs.
type ParamCleaner struct {
	drop, keep     []string
	sort           bool
	keepSessionIDs bool
}

// NewParamCleaner returns the ParamCleaner of rules, or an error that names an invalid parameter
// name.
func NewParamCleaner(rules ParamRules) (*ParamCleaner, error) {
	p := &ParamCleaner{sort: rules.Sort, keepSessionIDs: rules.KeepSessionIDs}
	for _, list := range []struct {
		from []string
		to   *[]string
	}{{rules.Drop, &p.drop}, {rules.Keep, &p.keep}} {
		for _, name := range list.from {
			// Spell the name as a parsed URL does, because cleanQuery compares names with those of
			// parsed URLs.
			u, err := decorum.ParseURL("http://x/?" + name)
			_, canonical, _ := strings.Cut(u.PathAndQuery(), "?")
			if err != nil || canonical == "" || strings.ContainsAny(name, "&=#") {
				return nil, fmt.Errorf("%q is not the name of a parameter", name)
			}
			*list.to = append(*list.to, canonical)
		}
	}
	// Keep alone means that all other parameters are removed.
	if len(p.keep) > 0 && len(p.drop) == 0 {
		p.drop = []string{"*"}
	}
	return p, nil
}

// An AppliedCleaningRule is one change that CleanURLAndExplain made to a URL.
type AppliedCleaningRule struct {
	Removed string `json:"took"` // the removed text; empty if parameters were sorted
	Rule    string `json:"rule"` // the rule that caused the change
}

// CleanURL returns u rewritten by the rules. It is idempotent and keeps the origin of u.
func (p *ParamCleaner) CleanURL(u decorum.URL) decorum.URL { return p.cleanURL(u, nil) }

// CleanURLAndExplain returns what CleanURL returns, and the changes.
func (p *ParamCleaner) CleanURLAndExplain(u decorum.URL) (clean decorum.URL, changes []AppliedCleaningRule) {
	clean = p.cleanURL(u, func(c AppliedCleaningRule) { changes = append(changes, c) })
	return clean, changes
}

// cleanURL implements CleanURL, and calls report, unless it is nil, with each change.
func (p *ParamCleaner) cleanURL(u decorum.URL, report func(AppliedCleaningRule)) decorum.URL {
	if u.IsZero() {
		return u
	}
	if report == nil {
		report = func(AppliedCleaningRule) {}
	}
	original := u.PathAndQuery()
	path, query, hasQuery := strings.Cut(original, "?")
	cleaned := path
	if p == nil || !p.keepSessionIDs {
		cleaned = stripSessionIDsFromPath(path, report)
	}
	// An empty query stays (rule 8 of ParseURL); one that loses all its parameters does not.
	if hasQuery && query == "" {
		cleaned += "?"
	} else if hasQuery {
		if query = p.cleanQuery(query, report); query != "" {
			cleaned += "?" + query
		}
	}
	// A clean URL, which is the usual case, needs no parsing.
	if cleaned == original {
		return u
	}
	clean, err := decorum.ParseURL(u.Origin().String() + cleaned)
	// A URL that the rules made invalid stays as it was.
	if err != nil || clean.Origin() != u.Origin() {
		return u
	}
	return clean
}

// cleanQuery returns query without session IDs and rewritten by the rules.
func (p *ParamCleaner) cleanQuery(query string, report func(AppliedCleaningRule)) string {
	if (p == nil || len(p.drop) == 0 && !p.sort) && !mayHaveSessionParam(query) {
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
	if p != nil && p.sort && !slices.IsSortedFunc(remaining, compareParamsByName) {
		slices.SortStableFunc(remaining, compareParamsByName)
		report(AppliedCleaningRule{Rule: "params.sort"})
	}
	return strings.Join(remaining, "&")
}

// matchingDropRule returns the rule that removes parameter, and false if no rule does.
func (p *ParamCleaner) matchingDropRule(parameter string) (rule string, isDropped bool) {
	name, id, _ := strings.Cut(parameter, "=")
	isSessionID := isSessionIDParam(name, id)
	if p == nil {
		return sessionQueryRule, isSessionID
	}
	matches := func(pattern string) bool { return matchesWildcard(pattern, name) }
	if slices.ContainsFunc(p.keep, matches) {
		return "", false
	}
	if i := slices.IndexFunc(p.drop, matches); i >= 0 {
		return "params.drop: " + p.drop[i], true
	}
	return sessionQueryRule, isSessionID && !p.keepSessionIDs
}

// compareParamsByName orders parameters by name, regardless of their values.
func compareParamsByName(a, b string) int {
	name := func(parameter string) string {
		before, _, _ := strings.Cut(parameter, "=")
		return before
	}
	return strings.Compare(name(a), name(b))
}

// matchesWildcard reports whether name matches pattern, in which "*" stands for any characters.
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

// sessionNames holds the names under which servers put session IDs into the path, after a semicolon
// or as a segment name=id. A client without cookies gets a new id with every page, so that no URL
// occurs twice.
var sessionNames = [...]string{"jsessionid", "phpsessid", "sessionid", "session_id", "aspsessionid", "sid"}

// minSIDLength is the least length of a "sid" that is taken for a session ID, rather than for the
// number of a station or a story.
const minSIDLength = 8

// AppliedCleaningRule.Rule of a removed session ID.
const (
	sessionRule      = "session id in the path"
	sessionQueryRule = "session id in the query"
)

// removesSessionID reports whether CleanURL removes a session ID from u.
func (p *ParamCleaner) removesSessionID(u decorum.URL) bool {
	_, changes := p.CleanURLAndExplain(u)
	return slices.ContainsFunc(changes, func(c AppliedCleaningRule) bool {
		return c.Rule == sessionRule || c.Rule == sessionQueryRule
	})
}

// sessionParams holds the names of query parameters that have no other use than session IDs: those of
// Java, PHP, ASP, osCommerce and Zen Cart. The names of ASP, ASPSESSIONIDQQRSTUVW for example, vary.
var sessionParams = [...]string{"jsessionid", "phpsessid", "oscsid", "zenid"}

// IsSessionIDName reports whether a query parameter of this name mostly means a session ID.
func IsSessionIDName(name string) bool {
	isName := func(known string) bool { return strings.EqualFold(name, known) }
	return slices.ContainsFunc(sessionNames[:], isName) || slices.ContainsFunc(sessionParams[:], isName)
}

// isSessionIDParam reports whether the parameter name=id of a query is certainly a session ID: by a name
// that nothing else has, or by a name that mostly means one and a value that looks like one. Others, such
// as a short sid, may choose the page.
func isSessionIDParam(name, id string) bool {
	if id == "" || len(name) < len("sid") {
		return false
	}
	isName := func(known string) bool { return strings.EqualFold(name, known) }
	const asp = "aspsessionid"
	if slices.ContainsFunc(sessionParams[:], isName) || len(name) >= len(asp) && isNamePrefix(name, asp) {
		return true
	}
	return slices.ContainsFunc(sessionNames[:], isName) && looksLikeSessionID(id)
}

// isNamePrefix reports whether name begins with prefix, ignoring ASCII case. It must not be shorter.
func isNamePrefix(name, prefix string) bool { return strings.EqualFold(name[:len(prefix)], prefix) }

// minRandomIDLength is the least length of a value that looks like a session ID: 64 bits in hex digits.
const minRandomIDLength = 16

// looksLikeSessionID reports whether id looks random: a long word in which letters and digits alternate
// often. Numbers, titles and UUIDs, which also name things, do not.
func looksLikeSessionID(id string) bool {
	changes, wasDigit := 0, false
	for i := range len(id) {
		c := id[i]
		isDigit := '0' <= c && c <= '9'
		if !isDigit && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
		if i > 0 && isDigit != wasDigit {
			changes++
		}
		wasDigit = isDigit
	}
	return len(id) >= minRandomIDLength && changes >= len(id)/6
}

// mayHaveSessionParam quickly reports whether query may have a parameter that isSessionIDParam accepts:
// all their names end in "id" or, ASP's, contain it.
func mayHaveSessionParam(query string) bool {
	for i := 0; ; i++ {
		next := strings.IndexAny(query[i:], "iI")
		if next < 0 {
			return false
		}
		if i += next; i+1 < len(query) && query[i+1]|0x20 == 'd' {
			return true
		}
	}
}

// stripSessionIDsFromPath returns path without session IDs: ;jsessionid=…, the segment /(S(…))/ of
// ASP.NET, and segments such as /PHPSESSID=…/.
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
		// A segment that is a session ID is removed; the last one leaves its slash.
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

// stripSessionParamsFromSegment returns segment without the session IDs among its parameters, which
// follow semicolons.
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

// isSessionIDPathPart reports whether s is name=id with a known name, or ASP.NET's (S(id)), which
// may contain other letters before and after S(id).
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
