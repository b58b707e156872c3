-- The seen set of an origin is split into sets of about two hundred fingerprints,
-- one more at a time (linear hashing): a set of so many integers takes eight bytes
-- for each, and no call walks a long one.
local full = 200

local function hash(print) return math.abs(tonumber(string.sub(print, -9))) end

-- level returns the highest power of two that is not above n.
local function level(n)
  local l = 1
  while 2 * l <= n do l = 2 * l end
  return l
end

local function setKey(o, i) return base .. 's:' .. o.name .. ':' .. i end

local function seenKey(o, print)
  local n = math.max(1, get(o, 'b'))
  local l, h = level(n), hash(print)
  local i = h % (2 * l)
  if i >= n then i = h % l end
  return setKey(o, i)
end

local function split(o)
  local n = math.max(1, get(o, 'b'))
  local l = level(n)
  local from, to = setKey(o, n - l), setKey(o, n)
  for _, print in ipairs(call('SMEMBERS', from)) do
    if hash(print) % (2 * l) == n then call('SMOVE', from, to, print) end
  end
  set(o, 'b', n + 1)
end

local function isSeen(o, print) return call('SISMEMBER', seenKey(o, print), print) == 1 end

local function see(o, print)
  call('SADD', seenKey(o, print), print)
  add(o, 'c', 1)
  add(meta, 'seen', 1)
  if get(o, 'c') > full * math.max(1, get(o, 'b')) then split(o) end
end

-- seeNew puts a fingerprint into the seen set; false if it was there.
local function seeNew(o, print)
  if isSeen(o, print) then return false end
  see(o, print)
  return true
end
