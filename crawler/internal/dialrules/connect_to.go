package dialrules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A ConnectTo is a rule that sends connections for a host and a port elsewhere, as curl's
// option --connect-to does.
type ConnectTo struct {
	requestedHost, requestedPort string // empty: any
	targetHost, targetPort       string // empty: the one that is asked for
}

// connectToPattern has HOST, PORT, HOST2 and PORT2. Only within brackets there are colons.
var connectToPattern = regexp.MustCompile("^" + strings.Repeat(`:(\[[^]]*\][^:]*|[^:[][^:]*|)`, 4)[1:] + "$")

// ParseConnectTo reads HOST:PORT:HOST2:PORT2. IPv6 addresses are in brackets.
func ParseConnectTo(s string) (ConnectTo, error) {
	parts := connectToPattern.FindStringSubmatch(s)
	if parts == nil {
		return ConnectTo{}, fmt.Errorf("%q is not HOST:PORT:HOST2:PORT2", s)
	}
	for _, port := range []string{parts[2], parts[4]} {
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			return ConnectTo{}, fmt.Errorf("%q: %q is not a port", s, port)
		}
	}
	return ConnectTo{strings.ToLower(parts[1]), parts[2], parts[3], parts[4]}, nil
}

// ParseConnectToRules returns the rules that texts say, in their order: see ParseConnectTo.
func ParseConnectToRules(texts []string) ([]ConnectTo, error) {
	var rules []ConnectTo
	for _, s := range texts {
		rule, err := ParseConnectTo(s)
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// matches reports whether the rule is for connections to a host and a port.
func (c ConnectTo) matches(host, port string) bool {
	return (c.requestedHost == "" || strings.Trim(c.requestedHost, "[]") == host) && (c.requestedPort == "" || c.requestedPort == port)
}

// firstMatchingConnectTo returns the rule that connections to a host and a port follow; the
// zero ConnectTo, which changes nothing, if none is for them.
func firstMatchingConnectTo(rules []ConnectTo, host, port string) ConnectTo {
	if i := slices.IndexFunc(rules, func(r ConnectTo) bool { return r.matches(host, port) }); i >= 0 {
		return rules[i]
	}
	return ConnectTo{}
}

// ApplyConnectTo returns where a connection to host and port goes, by the first rule
// that matches.
func ApplyConnectTo(rules []ConnectTo, host, port string) (string, string) {
	r := firstMatchingConnectTo(rules, host, port)
	if r.targetHost != "" {
		host = strings.Trim(r.targetHost, "[]")
	}
	return host, cmp.Or(r.targetPort, port)
}
