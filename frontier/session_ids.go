package frontier

import "strings"

// sessionNames are the names under which servers put the id of a session into
// the path, after a semicolon or as a segment name=id. Who comes without a
// cookie is given a new id with every page, so that no page is ever the same.
var sessionNames = [...]string{"jsessionid", "phpsessid", "sessionid", "session_id", "aspsessionid", "sid"}

// shortestSID is how long a "sid" is that is the id of a session, and not of a
// station or a story.
const shortestSID = 8

// sessionRule is what Params.Explain names.
const sessionRule = "session id in the path"

// withoutSession returns path without ids of sessions: ;jsessionid=…, the
// segment /(S(…))/ of ASP.NET, and segments such as /PHPSESSID=…/.
func withoutSession(path string, tell func(Change)) string {
	if !strings.ContainsAny(path, ";(=") {
		return path
	}
	segments := strings.Split(path, "/")
	remaining := segments[:0]
	for i, s := range segments {
		bare := withoutParameters(s)
		if bare != s {
			tell(Change{Took: s, Rule: sessionRule})
		}
		if isSession(bare) {
			tell(Change{Took: bare, Rule: sessionRule})
			if i < len(segments)-1 {
				continue
			}
			bare = ""
		}
		remaining = append(remaining, bare)
	}
	if path = strings.Join(remaining, "/"); path == "" {
		return "/"
	}
	return path
}

// withoutParameters returns a segment without those of its parameters, after
// semicolons, that are ids of sessions.
func withoutParameters(segment string) (bare string) {
	name, parameters, ok := strings.Cut(segment, ";")
	bare = name
	for more := ok; more; {
		var parameter string
		parameter, parameters, more = strings.Cut(parameters, ";")
		if !isSession(parameter) {
			bare += ";" + parameter
		}
	}
	return bare
}

// isSession reports whether s is name=id, or (S(id)) as ASP.NET writes it, where
// other letters may stand before and after.
func isSession(s string) bool {
	if name, id, ok := strings.Cut(s, "="); ok && id != "" {
		for _, known := range sessionNames {
			if strings.EqualFold(name, known) {
				return len(id) >= shortestSID || known != "sid"
			}
		}
		return false
	}
	return len(s) > len("(S())") && s[0] == '(' && strings.HasSuffix(s, "))") && strings.Contains(s, "S(")
}
