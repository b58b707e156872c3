package dialrules

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A ConnectTo is a rule that redirects connections for a host and a port, like curl's option
// --connect-to.
type ConnectTo struct {
	requestedHost, requestedPort string // empty: matches any
	targetHost, targetPort       string // empty: keeps the requested one
}

// connectToPattern matches HOST, PORT, HOST2 and PORT2. Only brackets may contain colons.
var connectToPattern = regexp.MustCompile("^" + strings.Repeat(`:(\[[^]]*\][^:]*|[^:[][^:]*|)`, 4)[1:] + "$")

// ParseConnectTo parses HOST:PORT:HOST2:PORT2. IPv6 addresses are in brackets.
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

// ParseConnectToRules parses each text with ParseConnectTo, in order.
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

// matches reports whether the rule applies to connections for host and port.
func (c ConnectTo) matches(host, port string) bool {
	return (c.requestedHost == "" || strings.Trim(c.requestedHost, "[]") == host) &&
		(c.requestedPort == "" || c.requestedPort == port)
}

// firstMatchingConnectTo returns the first rule that matches host and port, or the zero ConnectTo,
// which changes nothing.
func firstMatchingConnectTo(rules []ConnectTo, host, port string) ConnectTo {
	if i := slices.IndexFunc(rules, func(r ConnectTo) bool { return r.matches(host, port) }); i >= 0 {
		return rules[i]
	}
	return ConnectTo{}
}

// ApplyConnectTo returns the host and port that a connection for host and port goes to, according
// to the first rule that matches.
func ApplyConnectTo(rules []ConnectTo, host, port string) (string, string) {
	r := firstMatchingConnectTo(rules, host, port)
	if r.targetHost != "" {
		host = strings.Trim(r.targetHost, "[]")
	}
	return host, cmp.Or(r.targetPort, port)
}
