// Crawls a web with spider-rs: node -e … PROXY SEED HOSTS
const { Website } = require('@spider-rs/spider-rs')

const [proxy, seed, hosts] = process.argv.slice(1)
const scheme = new URL(seed).protocol
const others = Array.from({ length: hosts - 1 }, (_, i) => `${scheme}//site-${i + 1}.example`)
const website = new Website(seed).withRespectRobotsTxt(true).withProxies([proxy])
if (others.length > 0) {
  website.withExternalDomains(others)
}
website.build().crawl()
