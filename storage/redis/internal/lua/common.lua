-- Functions that all scripts share. KEYS[1] is the prefix of the partition's keys. ARGV[1] is the
-- caller's time in microseconds since 1970, for tests. If it is empty, the clock of this server
-- counts, and times in arguments are offsets from it. Numbers are doubles, which hold microseconds
-- exactly until the year 2255.
local keyPrefix, call = KEYS[1], redis.call
local now, clockOffset = tonumber(ARGV[1]), 0
if not now then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
  clockOffset = now
end

-- parseTime returns a time from an argument. An empty argument means no time, stored as 0.
local function parseTime(s)
  if s == '' then return 0 end
  return math.max(0, math.min(9007199254740991, clockOffset + tonumber(s)))
end

-- A hash that a call needs is read once, changed in memory, and written once at the end, by
-- saveChanges. A field whose value is 0 or empty is not stored.
local hashes = {}

-- loadHash returns the hash at a key: its fields as they are now, and which of them have changed.
-- new is true if the key does not exist.
local function loadHash(key)
  local o = hashes[key]
  if o then return o end
  o = {key = keyPrefix .. key, fields = {}, changed = {}}
  local flat = call('HGETALL', o.key)
  o.new = #flat == 0
  for i = 1, #flat, 2 do o.fields[flat[i]] = flat[i + 1] end
  hashes[key] = o
  return o
end

local function getNumber(o, field) return tonumber(o.fields[field]) or 0 end

-- setField changes a field in memory. 0 and '' delete it.
local function setField(o, field, value)
  if value == 0 or value == '' then value = nil end
  if o.fields[field] == value or value and tonumber(o.fields[field]) == value then return end
  o.fields[field], o.changed[field] = value, true
end

local function addToField(o, field, n)
  if n ~= 0 then setField(o, field, getNumber(o, field) + n) end
end

-- formatInteger formats a whole number. The server would convert it more slowly.
local function formatInteger(n) return string.format('%d', n) end

-- saveHash writes the changed fields of a hash.
local function saveHash(o)
  local updates, deletions = {}, {}
  for field in pairs(o.changed) do
    if o.fields[field] == nil then
      deletions[#deletions + 1] = field
    else
      local value = o.fields[field]
      if type(value) == 'number' then value = formatInteger(value) end
      updates[#updates + 1], updates[#updates + 2] = field, value
    end
  end
  o.changed = {}
  if #deletions > 0 then call('HDEL', o.key, unpack(deletions)) end
  if #updates > 0 then call('HSET', o.key, unpack(updates)) end
end

local meta = loadHash('m')

-- loadHost returns the state of a host, which is new if no key has it.
local function loadHost(name)
  local h = loadHash('h:' .. name)
  if h.new then
    -- A new host owes no rest for earlier failovers. During a fence (see lease.lua) it owes the
    -- rest for the current one: its state may have been lost.
    h.new, h.name = false, name
    setField(h, 'f', now < getNumber(meta, 'fence') and getNumber(meta, 'epoch') - 1 or getNumber(meta, 'epoch'))
  end
  h.name = name
  return h
end

-- findOrigin returns an origin that was added before, or nil.
local function findOrigin(name)
  local o = loadHash('o:' .. name)
  o.name = name
  if o.new then return nil end
  return o
end

-- findOrAddOrigin returns an origin, and adds it to the list a if it is new. The notes of the crawl
-- have an empty name, which is not in the list.
local function findOrAddOrigin(name, hostName)
  local o = findOrigin(name)
  if o then return o end
  o = loadHash('o:' .. name)
  o.new, o.fields.H, o.changed.H = false, hostName, true
  if name ~= '' then call('RPUSH', keyPrefix .. 'a', name) end
  return o
end

-- firstMember returns the member of a sorted set with the lowest score, and that score.
local function firstMember(key)
  local t = call('ZRANGE', key, 0, 0, 'WITHSCORES')
  return t[1], tonumber(t[2])
end
