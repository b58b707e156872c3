package dialrules

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
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

// firstMatchingRule returns the rule that connections to a host and a port follow; the
// zero ConnectTo, which changes nothing, if none is for them.
func firstMatchingRule(rules []ConnectTo, host, port string) ConnectTo {
	if i := slices.IndexFunc(rules, func(r ConnectTo) bool { return r.matches(host, port) }); i >= 0 {
		return rules[i]
	}
	return ConnectTo{}
}

// ApplyConnectTo returns where a connection to host and port goes, by the first rule
// that matches.
func ApplyConnectTo(rules []ConnectTo, host, port string) (string, string) {
	r := firstMatchingRule(rules, host, port)
	if r.targetHost != "" {
		host = strings.Trim(r.targetHost, "[]")
	}
	return host, cmp.Or(r.targetPort, port)
}

// proxyPorts are the default ports of proxies, by scheme.
var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// ParseProxy reads the address of a proxy, SCHEME://[USER:PASSWORD@]HOST[:PORT].
// The scheme is http, https, socks5, where the crawl looks up the names of hosts,
// or socks5h, where the proxy does. The error does not repeat s, which may hold a
// password.
func ParseProxy(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, errors.New("the proxy is not a URL")
	}
	port, known := proxyPorts[u.Scheme]
	n, err := strconv.ParseUint(cmp.Or(u.Port(), port), 10, 16)
	switch {
	case !known:
		return nil, errors.New("the scheme of a proxy is http, https, socks5 or socks5h")
	case u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("a proxy is SCHEME://[USER:PASSWORD@]HOST[:PORT] and no more")
	case err != nil || n == 0:
		return nil, errors.New("the port of the proxy is out of range")
	}
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: net.JoinHostPort(u.Hostname(), fmt.Sprint(n))}, nil
}
