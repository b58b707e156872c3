package project

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/internal/dialrules"
)

// ZeroDelayCheck returns a function that reports whether politeness.delay, or that of politeness.hosts at now, sets
// no pause between requests to the host of an origin, and the host is not on this machine or a private network, as
// far as its name and fetch.connect_to tell. The pauses of politeness.adaptive and of robots.txt remain.
func (p *Project) ZeroDelayCheck(now time.Time) func(decorum.Origin) bool {
	policy, isLocal := p.PolitenessPolicy(), p.localTargetCheck()
	return func(o decorum.Origin) bool {
		return policy.ForHost(o.Host(), now).Delay <= 0 && !isLocal(o)
	}
}

// ForbiddenHostCheck returns a function that reports whether no visit may connect to the host of an origin, because
// it is on this machine or a private network, as far as its name and fetch.connect_to tell, and fetch.allow_private
// is not set.
func (p *Project) ForbiddenHostCheck() func(decorum.Origin) bool {
	isLocal := p.localTargetCheck()
	return func(o decorum.Origin) bool { return !p.Fetch.AllowPrivate && isLocal(o) }
}

// localTargetCheck returns a function that reports whether requests to an origin go to this machine or a private
// network, as far as its name and fetch.connect_to tell.
func (p *Project) localTargetCheck() func(decorum.Origin) bool {
	// Reading the project reports a malformed rule; without rules the name itself is looked at.
	rules, _ := dialrules.ParseConnectToRules(p.Fetch.ConnectToRules)
	return func(o decorum.Origin) bool {
		host := strings.Trim(o.Host(), "[]")
		port := map[string]string{"http": "80", "https": "443", "ftp": "21"}[o.Scheme()]
		if _, explicit, err := net.SplitHostPort(o.HostPort()); err == nil {
			port = explicit
		}
		host, _ = dialrules.ApplyConnectTo(rules, host, port)
		return isLocalHost(host)
	}
}

// isLocalHost reports whether host names this machine, or is an address of a private network.
func isLocalHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
