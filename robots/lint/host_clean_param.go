package lint

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/decorum-crawler/decorum/robots/internal/match"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// hostDirectiveProblem returns what is wrong with the value of a Host line, "" if it is valid (HOST-06
// to HOST-10, HOST-14).
func hostDirectiveProblem(value string) string {
	if _, ok := syntax.ParseMainMirror(value); ok {
		return ""
	}
	// Check what surrounds the name, then the port and each label.
	name := strings.TrimPrefix(value, "https://")
	switch {
	case value == "":
		return "it is empty"
	case strings.HasPrefix(name, "http://"):
		return "only https:// may precede the name"
	case strings.ContainsAny(name, ", \t"):
		return "more than one name"
	case strings.ContainsAny(name, "/?"):
		return "something follows the name"
	}
	name, port, hasPort := strings.Cut(name, ":")
	if n, err := strconv.ParseUint(port, 10, 16); hasPort &&
		(err != nil || n == 0 || strings.Trim(port, syntax.Digits) != "") {
		return "the port is not a number from 1 to 65535"
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "an IP address is not a name"
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return "a part of the name is empty"
		case label[0] == '-' || label[len(label)-1] == '-':
			return "a hyphen at the end of a part of the name"
		case strings.Trim(label, hostnameChars) != "":
			return "a name has letters, digits and hyphens only"
		}
	}
	return "no host could have this name"
}

const (
	letters       = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	hostnameChars = letters + syntax.Digits + "-"
)

// cleanParamProblem returns what is wrong with the value of a Clean-param line, "" if it is valid
// (CLEAN-02, CLEAN-10, CLEAN-14, CLEAN-22).
func cleanParamProblem(value string) string {
	params, path, _ := strings.Cut(strings.ReplaceAll(value, "\t", " "), " ")
	path = strings.Trim(path, " ")
	switch {
	case strings.Trim(params, "&") == "":
		return "no parameter"
	case len([]rune(value)) > 500:
		return "more than 500 characters"
	case strings.HasPrefix(params, "/"):
		return "the parameters come first, then the path"
	case path != "" && path[0] != '/' && path[0] != '*':
		return "the path does not begin with /"
	case strings.Trim(path, letters+syntax.Digits+".-/*_") != "":
		return "a path has A-Z a-z 0-9 . - / * _ only"
	}
	if p := match.CompilePattern(path); p.NumWildcards() > syntax.MaxCleanParamWildcards {
		return fmt.Sprintf("more than %d wildcards in the path", syntax.MaxCleanParamWildcards)
	}
	return ""
}
