package frontier

import (
	"strings"

	"github.com/decorum-crawler/decorum"
)

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
		if isSessionIDParam(stripped) {
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
		if !isSessionIDParam(parameter) {
			stripped += ";" + parameter
		}
	}
	return stripped
}

// isSessionIDParam reports whether s is name=id, or (S(id)) as ASP.NET writes it, where
// other letters may stand before and after.
func isSessionIDParam(s string) bool {
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
