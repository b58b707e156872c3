package project

import (
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
	"github.com/decorum-crawler/decorum/crawler/internal/httpheader"
)

func checkFetchSettings(p *Project) *FieldProblem {
	for i, t := range p.Fetch.ContentTypes {
		if name, _, err := mime.ParseMediaType(t); err != nil || name != t || !strings.Contains(t, "/") {
			return NewFieldProblem(indexedFieldName("fetch.content_types", i), "%q is not a media type: expected type/subtype in lower case, as in text/html", t)
		}
	}
	for i, rule := range p.Fetch.ConnectToRules {
		if _, err := dialrules.ParseConnectTo(rule); err != nil {
			return NewFieldProblem(indexedFieldName("fetch.connect_to", i), "%v (IPv6 addresses in brackets)", err)
		}
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.Fetch.Headers)) {
		if lower := strings.ToLower(name); seen[lower] {
			return NewFieldProblem("fetch.headers."+name, "the header is there twice, in other letters")
		} else {
			seen[lower] = true
		}
		if err := httpheader.CheckCustom(name, p.Fetch.Headers[name]); err != nil {
			return NewFieldProblem("fetch.headers."+name, "%v", err)
		}
	}
	if p.Fetch.FirstByteTimeout > p.Fetch.Timeout {
		return NewFieldProblem("fetch.first_byte", "%v is longer than fetch.timeout, %v", p.Fetch.FirstByteTimeout, p.Fetch.Timeout)
	}
	switch {
	case p.Fetch.FTP && p.Fetch.Proxy != "":
		return NewFieldProblem("fetch.ftp", "%v; leave one of the two out", errProxiedFTP)
	case p.Fetch.FTP && p.Handler != "":
		return NewFieldProblem("fetch.ftp", "%v; leave one of the two out", errFTPWithHandler)
	}
	if p.Store.Path == "" {
		return NewFieldProblem("store.path", "expected the name of a directory")
	}
	return checkProxySettings(p)
}

// checkProxySettings checks the proxy. What is said of it does not repeat it: it may hold
// a password.
func checkProxySettings(p *Project) *FieldProblem {
	if p.Fetch.Proxy == "" {
		return nil
	}
	if _, err := dialrules.ParseProxy(p.Fetch.Proxy); err != nil {
		return NewFieldProblem("fetch.proxy", "%v", err)
	}
	if len(p.Fetch.ConnectToRules) > 0 {
		return NewFieldProblem("fetch.proxy", "a proxy makes the connections, and does not know fetch.connect_to; leave one of the two out")
	}
	return nil
}
