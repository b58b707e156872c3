"""Follows every link of one host with Scrapy, politely, as its documentation shows."""
from urllib.parse import urlsplit

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Site(CrawlSpider):
    name = "site"
    rules = [Rule(LinkExtractor(), callback="parse_page", follow=True)]

    def __init__(self, url, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.start_urls = [url]
        self.allowed_domains = [urlsplit(url).hostname]

    def parse_page(self, response):
        yield {"url": response.url, "status": response.status}
