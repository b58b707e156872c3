package dialrules

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
)

// proxyPorts has the default port of each scheme of a proxy.
var proxyPorts = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}

// ParseProxy parses the URL of a proxy, SCHEME://[USER:PASSWORD@]HOST[:PORT]. The scheme is http,
// https, socks5 (the crawl looks up hosts) or socks5h (the proxy does). The error does not repeat
// s, which may contain a password.
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
