"""The public files of the data sets.

Each is downloaded from a copy whose bytes are known: a repository at one commit, with the SHA-256 of the file. Only
Letter comes from its original page, whose bytes are not known here: its content decides, in any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ._files import DataFile
from ._tables import Table, read_columns, read_fields, read_indicators, read_letters


def _on_github(
    path: str, source: str, read: Callable[[bytes], Table], n_rows: int, sha256: str, checksum: str
) -> DataFile:
    """source: owner, repository, commit and path, divided by slashes."""
    return DataFile(path, f"https://raw.githubusercontent.com/{source}", read, n_rows, sha256, checksum)


ROBOT_4 = _on_github(
    "robot/sensor_readings_4.data",
    "srushtidhope/Classification/d4baa6205b1145d6e0136eede1ca64c20cb72ff7/sensor_readings_4.data",
    partial(read_columns, n_columns=5, delimiter=","),
    n_rows=5456,
    sha256="7e057abf41bbb9ed6a367e3a16ce3f06aa869c0ac108ef4499c52db5ed80f205",
    checksum="daa3521afdbe1cc4f73a2acc9df96c029562473389d0d028a866d047d5625514",
)

ROBOT_24 = _on_github(
    "robot/sensor_readings_24.data",
    "SaiPamidipati/Robot-Movement-Classification/fd6fdf96d9b65f5d411837d27fd3cc045026befc/data/sensor_readings_24.csv",
    partial(read_columns, n_columns=25, delimiter=","),
    n_rows=5456,
    sha256="6e9728dedef8b35e31ba0be11aea85aa53bd248ab33652777df81b95a4cc8c00",
    checksum="e724727b7b84a78fabc21181e3a83551b1c962d6105fe251ee558690aef71916",
)

_read_segment = partial(read_columns, n_columns=20, label=0, delimiter=",", skip=(";", "REGION-"))

SEGMENT_DATA = _on_github(
    "segment/segmentation.data",
    "newtonlb/ProjetoAM/0ec4ab9d39f10362448a519804dfe3fc2e7d908f/segmentation.data",
    _read_segment,
    n_rows=210,
    sha256="b4226a708f25d44fbbe4eae36f0d66326bc46393534c2a0d2b9267ae1302002f",
    checksum="627253233f64fcfe6afc7efbce72e871fb66e8297195b4fb5280b253fede8644",
)

SEGMENT_TEST = _on_github(
    "segment/segmentation.test",
    "newtonlb/ProjetoAM/0ec4ab9d39f10362448a519804dfe3fc2e7d908f/segmentation.test",
    _read_segment,
    n_rows=2100,
    sha256="3b5aa7c3559fdc3a165e97d321809b81292084adfc112645e250d90321203685",
    checksum="b01c7f1c2679505267b91b44709957b997b92e26df335103ef7908fd9e783d01",
)

_read_satellite = partial(read_columns, n_columns=37, label_type=int)

SATELLITE_TRAIN = _on_github(
    "satellite/sat.trn",
    "dirichletcal/experiments_neurips/634337e6690e3508e2f57214a931ac4a96ea70f6/datasets/sat.trn",
    _read_satellite,
    n_rows=4435,
    sha256="6da888aa398f4dd56a85bb7114f7206896a360b7af1d790450f64dbdb8493fc5",
    checksum="59e72c56245a1371590c2a5f81a5f7fc5dc2eab34707305d4c715ee5f9d2776d",
)

SATELLITE_TEST = _on_github(
    "satellite/sat.tst",
    "dirichletcal/experiments_neurips/634337e6690e3508e2f57214a931ac4a96ea70f6/datasets/sat.tst",
    _read_satellite,
    n_rows=2000,
    sha256="0045be0391420a35a69e8d2b0a4ff4b032a4aa03feebba0d89b9aa3e2d42c212",
    checksum="cc17b4f4eecea4c91405e2c75d73dc42003c7e7d7f745384fc2205985639f4d3",
)

_read_shuttle = partial(read_columns, n_columns=10, label_type=int)

SHUTTLE_TRAIN = _on_github(
    "shuttle/shuttle.trn",
    "ssmcnatt/assignments/0ff4d1020232e9ff1c32813584601f3dac48423a/data/shuttle.trn",
    _read_shuttle,
    n_rows=43500,
    sha256="87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a",
    checksum="134104a6538842fe0848fe003f9428c41d734eb0ebeec6a99468abd708d2719c",
)

SHUTTLE_TEST = _on_github(
    "shuttle/shuttle.tst",
    "AlejandroMartinMontenegro/Statlog-Shuttle-Classification-MLP/1a7524ccf7a77705fa934e05f980dbfe8021b2a2/shuttle.tst",
    _read_shuttle,
    n_rows=14500,
    sha256="f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661",
    checksum="5502fab707917807f67166dc7dd5b71ff46a3eb0f79edfe07bacc80efc0f1093",
)

# SHA-256 and checksum of xaa.dat to xai.dat in turn
_VEHICLE_SUMS = """
fc0c8bd7c6df152785d0a6c2d31e41a2e6856aa13d867bfba4adf5f1545149cb
e8afa1490f3379593ffed90b00a48ecef44181c520e940289b8f2502d66b5269
10b4e1e395ced8b59e8983638b254e8b52c49c8063de12f13c16ec4128cf2e07
18911e8fb21916a36cca367191c3ec09f07fc1e8e8b0c0c7fc5fb1ed3711878e
99e32274bcded7e2093d03b6f6ca5a24833315690a426187b25b40756f9b43d1
743374d75b65986d04ee39e682e744d0b6a4661d72451d93201110873edf7c93
7bba11d666a7535bcb1e555c328e65998ef22d839bbdae130d76ef51a71bdd55
30a9105ff2e282c595e3fd67466ca8679fa6724b2009a4f1816176c48240608c
fb9d0622644a535c2e82a203a87b9a82e2dba2c1e86e6c9713ec572b46a1a832
bf1e10ad2b62d5c470435a00d7152a6f8ec7cffdcd808ebc650345952b70a871
5c6801c96a9c0e9947ee141dec7eeaf7b29b8838a936d31ed3502d589c0e1a85
4e7f1a4371ef75edc074fca569a92b7f163b61825f210a938476debe6dedf6b0
58c46e0f6e2905519318e47f7632034c79bc2b866219d1f7e99fb4d0850e4ea4
6da3d85a7b699a440ea1a41704f75da2694df639f15aabaa570b9c55acd81532
20ba5a77150dab9096a54c462a5661fa1a60f73f5b3ee0829f5ba151543ddd2c
317ab8cfde1c4598b5ec6cd0ba48d0f4c6237da26a05ed1219e30168bf40ae9c
8102cf7019524a3a3beb63993fdfbbf7a7f3dd30eea635e2df280387ba8831d3
59363e96f45b716ecb97b7d5bbe5128e071a175e6ba92cb48b205d6efda12dd5
"""

VEHICLE = tuple(
    _on_github(
        f"vehicle/xa{letter}.dat",
        f"ashishkumar88/statisticallearningprojectonsvms/83d37c9d54dd03a058f6a526451287cbfb6c61a5/xa{letter}.dat",
        partial(read_columns, n_columns=19),
        n_rows=94,
        sha256=_VEHICLE_SUMS.split()[2 * k],
        checksum=_VEHICLE_SUMS.split()[2 * k + 1],
    )
    for k, letter in enumerate("abcdefghi")
)

STEEL_CLASSES = ("Pastry", "Z_Scratch", "K_Scatch", "Stains", "Dirtiness", "Bumps", "Other_Faults")
STEEL = _on_github(
    "steel/Faults.NNA",
    "Akshay9705/adapting-digital-tools-and-lean-six-sigma/e3db5ab2291ca05c92f541b48e30a57df5814d1e/Faults.NNA",
    partial(read_indicators, n_columns=34, classes=STEEL_CLASSES),
    n_rows=1941,
    sha256="5c1e270d42b950a569407f74e87e7ef6f013aef592ed627617395c9abdecc344",
    checksum="48eaa7931e3f7b107b7824b7c4245251a9b72a86e93a73196789a5814c826485",
)

LETTER = DataFile(
    "letter/letter.data.gz",
    "https://ai.stanford.edu/~btaskar/ocr/letter.data.gz",
    read_letters,
    n_rows=52152,
    sha256=None,
    checksum="1c03ad6212f0b3deec142611377dfd09bc2516d5d4f474124f4837502c4fe392",
    any_order=True,
)

LANDMINE = _on_github(
    "landmine/LandmineData.mat",
    "daizhongxiang/Federated_Bayesian_Optimization/9f46a1dfbbcfd5823e026ad9418a4cb881676ae9/LandmineData.mat",
    read_fields,
    n_rows=14820,
    sha256="2163ab20a80e33a8b65593c48cf283c540599dcb291105e63fa4af2ce24c2bea",
    checksum="2093ff20728b28456870b336eb59d2bbdd8d4baaeae3814227600c9e0cfa473f",
)
