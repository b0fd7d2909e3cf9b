-- Streaming tables take what is new at each run, materialized views are computed anew.
CREATE STREAMING TABLE silver
COMMENT 'Reports that could be read, by place: myhouse/floor/1/kitchen/sink/LightStatus'
AS SELECT split(key, '/')[2] AS floor, split(key, '/')[3] AS room, split(key, '/')[4] AS lamp,
          value.on AS is_on, value.luminosity AS luminosity, timestamp
FROM STREAM bronze
WHERE value IS NOT NULL;

CREATE MATERIALIZED VIEW gold
COMMENT 'How bright each floor was in each hour'
AS SELECT floor, date_trunc('hour', timestamp) AS hour, count(*) AS reports, avg(luminosity) AS luminosity
FROM silver
GROUP BY ALL;
