package daemontest

import (
	"fmt"
	"strings"

	"github.com/decorum-crawler/decorum/storage/redis/redistest"
)

// ProjectYAML returns the text of a project file that crawls f.Web from seed, without a try of
// /sitemap.xml. Each of more is appended as a line.
func (f *WebFixture) ProjectYAML(seed string, more ...string) string {
	return fmt.Sprintf("agent: {product: decorum, contact: 'mailto:bot@example.com'}\nseeds: [%s]\n"+
		"fetch: {allow_private: true, connect_to: ['::%s']}\ndiscover: {sitemap_xml: false}\n%s\n", seed, f.Addr,
		strings.Join(more, "\n"))
}

// NoDelayYAML is the setting of a project that visits hosts without a delay.
const NoDelayYAML = "politeness: {delay: 0s, adaptive: 0}"

// MinimalProject is a project file with only the required fields.
const MinimalProject = `agent: {contact: "mailto:bot@example.com"}
seeds: [https://example.com/]
`

// RedisField returns the fields of a project file that keep its state in the Redis cluster c. more is added
// to store.redis.
func RedisField(c *redistest.Cluster, more string) string {
	return fmt.Sprintf("project: shop\nstore: {redis: {addresses: ['%s']%s}}\n", strings.Join(c.Addrs(), "', '"), more)
}
